// The rows of a made-up history: who comes from where, to which page, and what came of it.

import type { StoredEvent } from '../domain/event.ts'
import { type Decide, METHODS, type Situation, situationKey } from './seed-outcomes.ts'
import {
  CONSTANT,
  DEVICE,
  FOUND,
  HOME,
  LABEL,
  NETWORK,
  OUTCOME,
  PAGE,
  type Piece,
  pieceOf,
  put,
  type Rows,
} from './seed-pieces.ts'
import { cumulate, openSeedRandom } from './seed-random.ts'
import type { SeedVisitor } from './seed-visits.ts'
import { BOT_TYPES, DEVICES, HOMES, NETWORKS, PAGES, VPN_EXITS } from './seed-world.ts'

interface Outcome {
  readonly piece: Piece
  readonly event: StoredEvent
}

export interface RowMaker {
  /** Adds a visit to its visitor, and its row to `rows`. */
  make(visitor: SeedVisitor, atMs: number, rows: Rows): void
  /** Of the last row. */
  requestId(): string
  /** The rules that the last row's event matched; the same array for events that ended alike. */
  matches(): StoredEvent['matchedRules']
  monitorMatches(): StoredEvent['monitorMatches']
}

const OUTCOMES_MAX = 50_000
const PAGE_WEIGHTS = cumulate(PAGES.map(({ weight }) => weight))
const LABELLED = 0.04
/** Of those, how many are labelled wrong. */
const MISTAKEN = 0.04
const VPN_FROM = HOMES.length
const TOR_FROM = HOMES.length + VPN_EXITS.length
const MAILS = ['mail.example', 'post.example', 'inbox.example']

export function openRowMaker(seed: string, decide: Decide): RowMaker {
  const random = openSeedRandom(`rows ${seed}`)
  const outcomes = new Map<number, Outcome>()
  const usual = decide(USUAL, {})
  const constant = pieceOf(usual, CONSTANT)
  const devices = DEVICES.map(({ weight: _, ...device }) => {
    const { language, timezone } = usual.device
    return pieceOf({ ...usual, device: { ...device, language, timezone } }, DEVICE)
  })
  const homes = NETWORKS.map(({ facts, language }) =>
    pieceOf({ ...usual, device: { ...usual.device, language, timezone: facts.timezone } }, HOME),
  )
  const networks = NETWORKS.map(({ facts }) => pieceOf({ ...usual, ip: { ...facts, address: '192.0.2.1' } }, NETWORK))
  const pages = PAGES.map(({ url, tag }) => pieceOf({ ...usual, url, tag }, PAGE))
  const known = pieceOf({ ...usual, visitorFound: true }, FOUND)
  const unknown = pieceOf({ ...usual, visitorFound: false }, FOUND)
  const labels = {
    none: pieceOf({ ...usual, label: null }, LABEL),
    fraud: pieceOf({ ...usual, label: 'fraud' }, LABEL),
    legitimate: pieceOf({ ...usual, label: 'legitimate' }, LABEL),
  }
  let last = usual
  let requestId = ''

  function outcomeOf(situation: Situation, page: number): Outcome {
    const key = situationKey(situation)
    const known = outcomes.get(key)
    if (known !== undefined) return known
    if (outcomes.size >= OUTCOMES_MAX) outcomes.clear()
    const event = decide(situation, (PAGES[page] as (typeof PAGES)[number]).tag)
    const outcome = { piece: pieceOf(event, OUTCOME), event }
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
    requestId: () => requestId,
    matches: () => last.matchedRules,
    monitorMatches: () => last.monitorMatches,
    make(visitor, atMs, rows) {
      const { kind, accounts } = visitor
      const isBot = kind === 'bot'
      const page = pageOf(visitor)
      const { action } = PAGES[page] as (typeof PAGES)[number]
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
      const { event } = outcome
      if (!found) visitor.firstAt = atMs
      visitor.lastAt = atMs
      visitor.visits++
      if (method === 'token') visitor.byToken++
      visitor.lastVerdict = event.verdict
      if (event.verdict !== null) visitor.verdicts[event.verdict]++
      seen(visitor, way.ip, atMs)
      last = event
      requestId = random.requestId(atMs)

      put(rows, constant)
      put(rows, devices[visitor.device] as Piece)
      put(rows, homes[visitor.home] as Piece)
      put(rows, networks[way.network] as Piece)
      put(rows, pages[page] as Piece)
      put(rows, outcome.piece)
      put(rows, found ? known : unknown)
      const { numbers, texts, size: row } = rows
      numbers.ts[row] = atMs
      numbers.first_seen_at[row] = visitor.firstAt
      numbers.last_seen_at[row] = atMs
      numbers.confidence[row] = CONFIDENCE[METHODS.indexOf(method)]?.(isUnsure, random.int(200)) ?? 0
      numbers.total_visits[row] = visitor.visits
      numbers.linked_accounts[row] = linkedAccounts
      numbers.log_partition[row] = visitor.partition
      const number = account < 0 ? 0 : (accounts[account] as number)
      const hasMail = account >= 0 && number % 3 !== 0
      texts.request_id.add(requestId)
      texts.visitor_id.add(visitor.id)
      texts.ip.add(way.ip)
      texts.linked_id.add(account < 0 ? '' : `user_${number}`)
      texts.email.add(hasMail ? `user_${number}@${MAILS[number % MAILS.length]}` : '')
      put(rows, labels[labelOf(visitor) ?? 'none'])
      numbers.anonymity_set[row] = method === 'token' ? 1 : 1 + random.int(4)
      rows.size++
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

const USUAL: Situation = {
  bot: -1,
  vpn: -1,
  tor: false,
  incognito: false,
  tampered: false,
  emulator: false,
  rooted: false,
  network: 0,
  action: 'view',
  isNight: false,
  method: 'token',
  hasAccount: false,
  isNewForAccount: false,
  linkedAccounts: 0,
  isUnsure: false,
}
