// The events of a made-up history: who comes from where, to which page, and what came of it.

import type { StoredEvent } from '../domain/event.ts'
import { type Decide, SEEDED_METHODS, type Situation, situationKey } from './seed-outcomes.ts'
import { cumulate, openSeedRandom } from './seed-random.ts'
import type { SeedVisitor } from './seed-visits.ts'
import { BOT_TYPES, DEVICES, HOMES, NETWORKS, PAGES, VPN_EXITS } from './seed-world.ts'

export interface EventMaker {
  /** Adds a visit to its visitor and returns its event. Events that ended alike share their outcome. */
  make(visitor: SeedVisitor, atMs: number): StoredEvent
}

const OUTCOMES_MAX = 50_000
const PAGE_WEIGHTS = cumulate(PAGES.map(({ weight }) => weight))
const LABELLED = 0.04
/** Of those, how many are labelled wrong. */
const MISTAKEN = 0.04
const VPN_FROM = HOMES.length
const TOR_FROM = HOMES.length + VPN_EXITS.length
const MAILS = ['mail.example', 'post.example', 'inbox.example']

/** A visitor's device as every event of it has it. */
const DEVICE_OF = DEVICES.map(({ weight: _, ...device }) => device)

export function openEventMaker(seed: string, decide: Decide): EventMaker {
  const random = openSeedRandom(`rows ${seed}`)
  const outcomes = new Map<number, StoredEvent>()

  function outcomeOf(situation: Situation, page: number): StoredEvent {
    const key = situationKey(situation)
    const known = outcomes.get(key)
    if (known !== undefined) return known
    if (outcomes.size >= OUTCOMES_MAX) outcomes.clear()
    const outcome = decide(situation, (PAGES[page] as (typeof PAGES)[number]).tag)
    outcomes.set(key, outcome)
    return outcome
  }

  /** Its address, and whether that hides it. */
  function wayOf(visitor: SeedVisitor): { network: number; ip: string; vpn: number; tor: boolean } {
    if (random.chance(visitor.vpn)) {
      const vpn = random.int(VPN_EXITS.length)
      const { prefix } = NETWORKS[VPN_FROM + vpn] as (typeof NETWORKS)[number]
      return { network: VPN_FROM + vpn, ip: `${prefix}.${random.int(8)}.${1 + random.int(60)}`, vpn, tor: false }
    }
    if (visitor.kind === 'abuser' && random.chance(0.08)) {
      const { prefix } = NETWORKS[TOR_FROM] as (typeof NETWORKS)[number]
      const ip = `${prefix}.${100 + random.int(3)}.${1 + random.int(120)}`
      return { network: TOR_FROM, ip, vpn: -1, tor: true }
    }
    const isAway = random.chance(0.18)
    const { home, away, homeIp, awayIp } = visitor
    return { network: isAway ? away : home, ip: isAway ? awayIp : homeIp, vpn: -1, tor: false }
  }

  function pageOf(visitor: SeedVisitor): number {
    if (visitor.kind === 'bot' && random.chance(0.6)) return random.int(PAGES.length)
    return random.weighted(PAGE_WEIGHTS)
  }

  function labelOf(visitor: SeedVisitor): StoredEvent['label'] {
    if (!random.chance(LABELLED)) return null
    const isFraud = visitor.kind === 'person' ? random.chance(0.01) : true
    return isFraud !== random.chance(MISTAKEN) ? 'fraud' : 'legitimate'
  }

  return {
    make(visitor, atMs) {
      const { kind, accounts } = visitor
      const isBot = kind === 'bot'
      const page = pageOf(visitor)
      const { action, url, tag } = PAGES[page] as (typeof PAGES)[number]
      const way = wayOf(visitor)
      const found = visitor.visits > 0
      // A private window has no storage, so there is no token to come back with.
      const isPrivate = !isBot && random.chance(visitor.privacy)
      const drawn = random.float()
      const method = !found ? 'new' : isPrivate || drawn > 0.9 ? (drawn > 0.5 ? 'exact' : 'linked') : 'token'
      const account = accounts.length > 0 && (action !== 'view' || found) ? random.int(accounts.length) : -1
      const bit = account < 0 ? 0 : 1 << account
      const isNewForAccount = bit !== 0 && (visitor.accountsSeen & bit) === 0
      visitor.accountsSeen |= bit
      const linkedAccounts = bitCount(visitor.accountsSeen)
      const isUnsure = method === 'linked' && random.chance(0.15)
      const outcome = outcomeOf(
        {
          bot: isBot ? visitor.device % BOT_TYPES.length : -1,
          vpn: way.vpn,
          tor: way.tor,
          incognito: isPrivate,
          tampered: kind === 'abuser' ? random.chance(0.2) : random.chance(0.002),
          emulator: kind === 'abuser' && random.chance(0.04),
          rooted: kind === 'abuser' && random.chance(0.03),
          network: way.network,
          action,
          isNight: atMs % 86_400_000 < 18_000_000,
          method,
          hasAccount: account >= 0,
          isNewForAccount,
          linkedAccounts,
          isUnsure,
        },
        page,
      )
      if (!found) visitor.firstAt = atMs
      visitor.lastAt = atMs
      visitor.visits++
      if (method === 'token') visitor.byToken++
      visitor.lastVerdict = outcome.verdict
      if (outcome.verdict !== null) visitor.verdicts[outcome.verdict]++
      seen(visitor, way.ip, atMs)

      const requestId = random.requestId(atMs)
      const confidence = CONFIDENCE[SEEDED_METHODS.indexOf(method)]?.(isUnsure, random.int(200)) ?? 0
      const label = labelOf(visitor)
      const anonymitySet = method === 'token' ? 1 : 1 + random.int(4)
      const number = account < 0 ? 0 : (accounts[account] as number)
      const hasMail = account >= 0 && number % 3 !== 0
      const home = NETWORKS[visitor.home] as (typeof NETWORKS)[number]
      const { facts } = NETWORKS[way.network] as (typeof NETWORKS)[number]
      const device = DEVICE_OF[visitor.device] as (typeof DEVICE_OF)[number]
      return {
        ...outcome,
        requestId,
        visitorId: visitor.id,
        confidence: confidence / 10_000,
        timestamp: atMs,
        firstSeenAt: visitor.firstAt,
        lastSeenAt: atMs,
        device: { ...device, language: home.language, timezone: home.facts.timezone },
        ip: { ...facts, address: way.ip },
        linkedId: account < 0 ? null : `user_${number}`,
        email: hasMail ? `user_${number}@${MAILS[number % MAILS.length]}` : null,
        tag,
        url,
        identity: { ...outcome.identity, anonymitySet },
        visitor: {
          totalVisits: visitor.visits,
          linkedAccounts,
          ageSeconds: Math.floor((atMs - visitor.firstAt) / 1_000),
        },
        label,
      }
    },
  }
}

/** By method, in ten-thousandths. */
const CONFIDENCE: readonly ((isUnsure: boolean, noise: number) => number)[] = [
  (_, noise) => 9_300 + noise,
  (_, noise) => 9_800 + noise,
  (_, noise) => 9_100 + noise,
  (isUnsure, noise) => (isUnsure ? 3_900 : 7_600) + noise,
]

const OTHERS_KEPT = 22

function seen(visitor: SeedVisitor, ip: string, atMs: number): void {
  if (ip === visitor.homeIp) visitor.homeAt = atMs
  else if (ip === visitor.awayIp) visitor.awayAt = atMs
  else {
    visitor.others = (visitor.others ?? []).filter((one) => one.ip !== ip).slice(1 - OTHERS_KEPT)
    visitor.others.push({ ip, at: atMs })
  }
}

function bitCount(bits: number): number {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++
  return count
}
