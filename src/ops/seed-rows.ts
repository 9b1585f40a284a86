// The rows of a made-up history, at a cost of two microseconds: what is the same for a device, a network, a page or an outcome is
// encoded once, by the encoder of every other row, and a row is put together from such pieces in the order of the columns.

import type { StoredEvent } from '../domain/event.ts'
import { type Decide, METHODS, type Situation, situationKey } from './seed-outcomes.ts'
import {
  CONSTANT,
  DEVICE,
  EVENT,
  EVENT_COLUMNS,
  EVENT_PLACES,
  HOME,
  NETWORK,
  OUTCOME,
  PAGE,
  type Pieces,
  piecesOf,
  RUNS,
} from './seed-pieces.ts'
import { cumulate, openSeedRandom } from './seed-random.ts'
import type { SeedVisitor } from './seed-visits.ts'
import { BOT_TYPES, DEVICES, HOMES, NETWORKS, PAGES, VPN_EXITS } from './seed-world.ts'

interface Outcome {
  readonly pieces: Pieces
  readonly event: StoredEvent
}

export interface Rows {
  /**
   * Adds a visit to its visitor and writes its row, with the newline, into `buffer` from `at` on. Returns where it ends.
   * A row has at most ROW_BYTES_MAX bytes.
   */
  write(visitor: SeedVisitor, atMs: number, buffer: Buffer, at: number): number
  /** Of the last row. */
  requestId(): string
  /** The rules that the last row's event matched; the same array for events that ended alike. */
  matches(): StoredEvent['matchedRules']
  monitorMatches(): StoredEvent['monitorMatches']
}

const COMMA = 44
const BRACKET = 93
const NEWLINE = 10
const COPIED_BY_CALL_MIN = 40
export const ROW_BYTES_MAX = 16_384
const OUTCOMES_MAX = 50_000
const PAGE_WEIGHTS = cumulate(PAGES.map(({ weight }) => weight))
const LABELLED = 0.04
/** Of those, how many are labelled wrong. */
const MISTAKEN = 0.04
const VPN_FROM = HOMES.length
const TOR_FROM = HOMES.length + VPN_EXITS.length
const MAILS = ['mail.example', 'post.example', 'inbox.example']

export function openRows(seed: string, decide: Decide): Rows {
  const random = openSeedRandom(`rows ${seed}`)
  const outcomes = new Map<number, Outcome>()
  const usual = decide(USUAL, {})
  const constants = piecesOf(usual, CONSTANT)
  const devices = DEVICES.map(({ weight: _, ...device }) => {
    const { language, timezone } = usual.device
    return piecesOf({ ...usual, device: { ...device, language, timezone } }, DEVICE)
  })
  const homes = NETWORKS.map(({ facts, language }) =>
    piecesOf({ ...usual, device: { ...usual.device, language, timezone: facts.timezone } }, HOME),
  )
  const networks = NETWORKS.map(({ facts }) => piecesOf({ ...usual, ip: { ...facts, address: '192.0.2.1' } }, NETWORK))
  const pages = PAGES.map(({ url, tag }) => piecesOf({ ...usual, url, tag }, PAGE))
  const cells: string[] = EVENT_COLUMNS.map(() => '')
  let last = usual
  let requestId = ''

  function outcomeOf(situation: Situation, page: number): Outcome {
    const key = situationKey(situation)
    const known = outcomes.get(key)
    if (known !== undefined) return known
    if (outcomes.size >= OUTCOMES_MAX) outcomes.clear()
    const event = decide(situation, (PAGES[page] as (typeof PAGES)[number]).tag)
    const outcome = { pieces: piecesOf(event, OUTCOME), event }
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
    write(visitor, atMs, buffer, at) {
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

      const number = account < 0 ? 0 : (accounts[account] as number)
      const mail = account >= 0 && number % 3 !== 0 ? `user_${number}@${MAILS[number % MAILS.length]}` : ''
      const time = String(atMs)
      if (!found) visitor.firstText = time
      cells[0] = time
      cells[1] = `"${requestId}"`
      cells[2] = visitor.idText
      cells[3] = found ? 'true' : 'false'
      cells[4] = visitor.firstText
      cells[5] = time
      cells[6] = String(CONFIDENCE[METHODS.indexOf(method)]?.(isUnsure, random.int(200)) ?? 0)
      cells[7] = `"${way.ip}"`
      cells[8] = account < 0 ? '""' : `"user_${number}"`
      cells[9] = `"${mail}"`
      cells[10] = `"${labelOf(visitor) ?? 'none'}"`
      cells[11] = String(visitor.visits)
      cells[12] = String(linkedAccounts)
      cells[13] = method === 'token' ? '1' : String(1 + random.int(4))
      cells[14] = String(visitor.partition)

      let end = at
      for (let i = 0; i < RUNS.length; i++) {
        const { source } = RUNS[i] as (typeof RUNS)[number]
        if (source === EVENT) {
          for (const place of EVENT_PLACES[i] as readonly number[]) {
            buffer[end++] = COMMA
            end = writeText(cells[place] as string, buffer, end)
          }
          continue
        }
        const from =
          source === OUTCOME
            ? outcome.pieces
            : source === DEVICE
              ? (devices[visitor.device] as Pieces)
              : source === HOME
                ? (homes[visitor.home] as Pieces)
                : source === NETWORK
                  ? (networks[way.network] as Pieces)
                  : source === PAGE
                    ? (pages[page] as Pieces)
                    : constants
        end = writeBytes(from[i] as Uint8Array, buffer, end)
      }
      buffer[end++] = BRACKET
      buffer[end++] = NEWLINE
      return end
    },
  }
}

/** ASCII only. A call into the engine for each of a row's short texts would cost more than all the rest. */
function writeText(text: string, buffer: Buffer, at: number): number {
  for (let i = 0; i < text.length; i++) buffer[at + i] = text.charCodeAt(i)
  return at + text.length
}

function writeBytes(piece: Uint8Array, buffer: Buffer, at: number): number {
  const { length } = piece
  if (length > COPIED_BY_CALL_MIN) buffer.set(piece, at)
  else for (let i = 0; i < length; i++) buffer[at + i] = piece[i] as number
  return at + length
}

/** By method, in ten-thousandths. */
const CONFIDENCE: readonly ((isUnsure: boolean, noise: number) => number)[] = [
  (_, noise) => 9_300 + noise,
  (_, noise) => 9_800 + noise,
  (_, noise) => 9_100 + noise,
  (isUnsure, noise) => (isUnsure ? 3_900 : 7_600) + noise,
]

const IPS_KEPT = 24

function seen(visitor: SeedVisitor, ip: string, atMs: number): void {
  const { ips } = visitor
  for (const one of ips) {
    if (one.ip !== ip) continue
    one.at = atMs
    return
  }
  ips.push({ ip, at: atMs })
  if (ips.length <= IPS_KEPT) return
  const oldest = ips.reduce((at, one, i) => (one.at < (ips[at]?.at ?? 0) ? i : at), 0)
  ips.splice(oldest, 1)
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
