// How much speaks for one known visitor against a device nobody has seen: every value, the browser's version, the network,
// how often this visitor comes without a token, and how many other devices would look like that.

import {
  CANVAS_RESCALED,
  type Chances,
  DEVICES_ASSUMED,
  DEVICES_VISITORS,
  ELSEWHERE,
  LOOKALIKES_DESKTOP,
  LOOKALIKES_PHONE,
  type NetworkMatch,
  OTHERS_UNSEEN,
  SAME_ADDRESS,
  SAME_NETWORK,
  SHARED_NETWORK,
  TOGETHER,
} from './agreement.ts'
import type { Attributes } from './attributes.ts'
import { jointPositions } from './keys.ts'
import { ageOf, keeping, type Learned, lookalikesUnseen, staying, versionsAt } from './learned.ts'
import {
  CANVAS,
  LANGUAGES,
  MODEL,
  PLATFORM_VERSION,
  type Profile,
  RATIO,
  SCREEN,
  samePanel,
  TIMEZONE,
} from './profile.ts'
import { type Returns, returningNow } from './returns.ts'
import { versionRatio } from './versions.ts'
import { ALTERNATING, type VisitorState } from './visitor.ts'

/** One visit, prepared for comparing many visitors with it. */
export interface Seen {
  readonly attributes: Attributes
  readonly atMs: number
  readonly returns: Returns
  readonly line: number
  readonly subnet: number
  readonly chances: Chances
  /** Of `chances`, by NetworkMatch. */
  readonly coincidences: readonly (readonly number[])[]
  readonly learned: Learned
  /** Visitors ever seen under each match key, by its letter; what is missing counts as none. */
  readonly totals: Readonly<Record<string, number>>
  /** Over how many partitions devices of one system and browser are spread. */
  readonly partitions: number
}

export interface Compared {
  readonly visitor: VisitorState
  readonly nearby: boolean
  /** Screen, languages or model differ. */
  readonly differing: number
  /** Log of the weight against "new": prior and all evidence. */
  readonly log: number
}

/** The closest of the networks a visitor was seen at. */
export function networkOf(visitor: VisitorState, line: number, subnet: number): NetworkMatch {
  let match: NetworkMatch = ELSEWHERE
  for (const network of visitor.networks) {
    if (network.ip === line) return SAME_ADDRESS
    if (network.subnet === subnet) match = SAME_NETWORK
  }
  return match
}

const NETWORK_MATCHES = [SAME_ADDRESS, SAME_NETWORK, ELSEWHERE] as const

const alternateOf = new Map(ALTERNATING.map((position, a) => [position as number, a]))

export function isAlternate(visitor: VisitorState, position: number, value: number): boolean {
  const a = alternateOf.get(position)
  return a !== undefined && visitor.alternates[a]?.includes(value) === true
}

function rescaled(known: Profile, seen: Profile): boolean {
  const [a, b] = [known.values[SCREEN], seen.values[SCREEN]]
  const [ratioA, ratioB] = [known.values[RATIO], seen.values[RATIO]]
  if (a == null || b == null || ratioA == null || ratioB == null || ratioA === ratioB) return false
  return samePanel(a, ratioA, b, ratioB)
}

/** Devices of the system and browser to confuse one with, in all partitions. */
const devicesOf = ({ learned: { visitors }, partitions }: Seen): number =>
  (DEVICES_ASSUMED * DEVICES_VISITORS) / (DEVICES_VISITORS + visitors) + visitors * partitions

/** Logs of the chances that another device agrees by chance, by where it is: those in one place speak alike. */
export const coincidences = ({ q }: Chances): number[][] =>
  NETWORK_MATCHES.map((match) => {
    const together = TOGETHER[match]
    return q.map((chance, i) => {
      if (i === LANGUAGES) return Math.log(Math.max(chance, together.languages))
      return Math.log(i === TIMEZONE ? Math.max(chance, together.timezone) : chance)
    })
  })

/**
 * Log of how many other devices would agree with the visit in all that this visitor agrees in, network included, of all
 * `devices`. Values hang together, so their chances alone would make what is popular look rare: the visitors counted
 * under a key that joins them say how popular it is.
 */
function logAlike(
  known: Profile,
  seen: Seen,
  agreed: readonly boolean[],
  match: NetworkMatch,
  devices: number,
): number {
  const { totals, learned } = seen
  const logs = seen.coincidences[match] as readonly number[]
  const gecko = seen.attributes.ua.engine === 'Gecko'
  const { values } = seen.attributes.profile
  /** Log of the chance of all agreements among positions, and whether known and unknown are equal at every one. */
  const joined = (positions: readonly number[]): { log: number; whole: boolean } => {
    let log = 0
    let whole = true
    for (const i of positions) {
      if ((known.values[i] ?? null) !== (values[i] ?? null)) whole = false
      if (agreed[i] === true) log += logs[i] as number
    }
    return { log, whole }
  }
  let product = 0
  for (let i = 0; i < logs.length; i++) if (agreed[i] === true) product += logs[i] as number
  const others = (letter: string): number => Math.max(0, (totals[letter] ?? 1) - 1)

  // Here: as many as were seen here, of which most agree in what the chances say.
  if (match === SAME_ADDRESS) return Math.log(others('c') + OTHERS_UNSEEN) + product
  if (match === SAME_NETWORK) {
    const hardware = joined(jointPositions('b', gecko))
    if (hardware.whole) return Math.log(others('b') + OTHERS_UNSEEN) + product - hardware.log
    return Math.log(devices * SHARED_NETWORK) + product
  }
  const mobile = seen.attributes.deviceType === 'mobile' || seen.attributes.deviceType === 'tablet'
  const lookalikes = lookalikesUnseen(learned, mobile ? LOOKALIKES_PHONE : LOOKALIKES_DESKTOP)
  let alike = Math.log(devices) + product
  for (const letter of ['e', 'd', 'a'] as const) {
    if (totals[letter] === undefined) continue
    const { log, whole } = joined(jointPositions(letter, gecko))
    if (!whole) continue
    const unseen = Math.min(1, Math.max(lookalikes, devices * Math.exp(log)))
    alike = Math.max(alike, Math.log(others(letter) + unseen) + product - log)
  }
  return alike
}

/** Null when they cannot be one device. */
export function compare(visitor: VisitorState, seen: Seen): Compared | null {
  const known = visitor.profile
  const { attributes, learned, chances } = seen
  const now = attributes.profile
  if (known === null || known.os !== now.os || known.family !== now.family) return null
  const elapsedMs = seen.atMs - visitor.lastSeenAt
  const age = ageOf(elapsedMs)
  const sameAtOtherScale = rescaled(known, now)
  // WebKit comes with the system: a newer browser on a changed system is one change, and the version accounts for it.
  const isOneUpdate = attributes.ua.engine === 'WebKit' && (now.major ?? 0) > (known.major ?? Number.POSITIVE_INFINITY)
  const agreed: boolean[] = []
  let log = 0
  let differing = 0
  for (let i = 0; i < now.values.length; i++) {
    const a = known.values[i]
    const b = now.values[i]
    if (a == null || b == null) continue
    const m = keeping(learned, chances.m[i] as number, i, age)
    if (a === b || isAlternate(visitor, i, b) || (sameAtOtherScale && i === SCREEN)) {
      agreed[i] = true
      log += Math.log(m)
    } else if (sameAtOtherScale && i === CANVAS) log += CANVAS_RESCALED
    else if (!(i === PLATFORM_VERSION && isOneUpdate)) {
      log += Math.log((1 - m) / (1 - (chances.q[i] as number)))
      if (i === SCREEN || i === LANGUAGES || i === MODEL) differing++
    }
  }
  const match = networkOf(visitor, seen.line, seen.subnet)
  log += Math.log(staying(learned, match, age))
  log += versionRatio(versionsAt(learned, age), known.major, now.major, elapsedMs)
  log += Math.log(seen.returns.odds * returningNow(seen.returns, visitor, elapsedMs))
  log -= logAlike(known, seen, agreed, match, devicesOf(seen))
  return { visitor, nearby: match !== ELSEWHERE, differing, log }
}
