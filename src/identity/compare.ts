// How much speaks for one known visitor against a device nobody has seen: every value, the browser's version, the network,
// how often this visitor comes without a token, and how many other devices would look like that.

import { roomForNumbers } from '../lib/room.ts'
import { seenAgeOf } from './absences.ts'
import { partsOf } from './address.ts'
import {
  CANVAS_RESCALED,
  type Chances,
  chancesFor,
  DEVICES_ASSUMED,
  DEVICES_VISITORS,
  ELSEWHERE,
  LOOKALIKES_DESKTOP,
  LOOKALIKES_PHONE,
  NETWORK_MATCHES,
  type NetworkMatch,
  OTHERS_UNSEEN,
  SAME_ADDRESS,
  SAME_NETWORK,
  SAME_PROVIDER,
  SHARED_NETWORK,
  SHARED_PROVIDER,
} from './agreement.ts'
import type { Attributes } from './attributes.ts'
import { keeping, lookalikesUnseen, sameProvider, staying, versionsAt } from './estimates.ts'
import { jointPositions } from './keys.ts'
import type { MatchStatistics } from './match-statistics.ts'
import {
  CANVAS,
  DISPLAY,
  FIRST_VALUES,
  FRAME,
  PLATFORM_VERSION,
  type Profile,
  RATIO,
  SCREEN,
  samePanel,
  VALUE_NAMES,
} from './profile.ts'
import { providerOf } from './provider.ts'
import { sharing, traitCode } from './rarity.ts'
import { type Returns, returningNow, returnsOf } from './returns.ts'
import type { Engine } from './user-agent.ts'
import { type VersionsLearned, versionRatio } from './versions.ts'
import { ALTERNATING, type VisitorState } from './visitor.ts'

/** What a visitor's values weigh that was last seen at some age: logs, by position. */
interface Weights {
  readonly same: readonly number[]
  readonly different: readonly number[]
  /** By NetworkMatch. */
  readonly networks: readonly number[]
  readonly versions: VersionsLearned
}

/** What is to be compared with visitors. */
export interface Visited {
  readonly attributes: Attributes
  readonly atMs: number
  /** Canonical. */
  readonly ip: string
  /** Whose the address is, where address data says so. */
  readonly asn: number | null
  readonly isPrivate: boolean
  readonly statistics: MatchStatistics
  /** Visitors ever seen under each match key, by its letter; what is missing counts as none. */
  readonly totals: Readonly<Record<string, number>>
  /** Over how many partitions devices of one system and browser are spread. */
  readonly partitions: number
}

/** One visit, prepared for comparing many visitors with it: whatever does not depend on the visitor is made once. */
export interface SeenVisit extends Visited {
  readonly returns: Returns
  readonly line: number
  readonly subnet: number
  readonly provider: number
  /** As records keep addresses. */
  readonly masked: string
  readonly chances: Chances
  /** Log of the chance that another device agrees, by NetworkMatch; made when the first visitor of that is compared. */
  readonly alike: (readonly number[] | undefined)[]
  /** By age of the earlier visit; made when the first visitor of that age is compared. */
  readonly weights: (Weights | undefined)[]
  /** Devices of the system and browser to confuse one with, in all partitions. */
  readonly devices: number
  /** Devices still unseen that look like one whose look only it has. */
  readonly lookalikes: number
  readonly joints: Joints
}

export interface Compared {
  readonly visitor: VisitorState
  /** Found under the exact key. */
  readonly exact: boolean
  /** From an address or a network it was seen at. */
  readonly nearby: boolean
  /** Log of the weight against "new": prior and all evidence. */
  readonly log: number
  /** The part of that which tells it from a machine of its kind: what its user chose and plugged in. */
  readonly personal: number
}

/** The closest of the networks a visitor was seen at. */
export function networkOf(
  visitor: VisitorState,
  line: number,
  subnet: number,
  provider: number,
  masked = '',
): NetworkMatch {
  let match: NetworkMatch = ELSEWHERE
  for (const network of visitor.networks) {
    if (network.ip === line) return SAME_ADDRESS
    if (network.subnet === subnet) match = SAME_NETWORK
  }
  // Addresses are forgotten, the networks around them are not.
  if (match === ELSEWHERE && visitor.ips.includes(masked)) return SAME_NETWORK
  return match === ELSEWHERE && visitor.providers.includes(provider) ? SAME_PROVIDER : match
}

/** By position of the profile: where its alternates are kept; -1 when they are not. */
const ALTERNATES_AT = VALUE_NAMES.map((_, position) => (ALTERNATING as readonly number[]).indexOf(position))

export function isAlternate(visitor: VisitorState, position: number, value: number): boolean {
  const at = ALTERNATES_AT[position] as number
  return at >= 0 && visitor.alternates[at]?.includes(value) === true
}

function rescaled(known: Profile, seen: Profile): boolean {
  const [a, b] = [known.values[SCREEN], seen.values[SCREEN]]
  const [ratioA, ratioB] = [known.values[RATIO], seen.values[RATIO]]
  if (a == null || b == null || ratioA == null || ratioB == null || ratioA === ratioB) return false
  return samePanel(a, ratioA, b, ratioB)
}

/** The positions that a key joins, and the same as bits. */
interface Joint {
  readonly letter: 'a' | 'b' | 'd' | 'e' | 'f'
  readonly positions: readonly number[]
  readonly bits: number
}
interface Joints {
  readonly looks: readonly Joint[]
  /** On one network, and of one provider. */
  readonly hardware: Joint
  readonly provided: Joint
}

function jointsFor(engine: Engine): Joints {
  const joint = (letter: Joint['letter']): Joint => {
    const positions = jointPositions(letter, engine)
    return { letter, positions, bits: positions.reduce((bits, i) => bits | (1 << i), 0) }
  }
  return { looks: [joint('e'), joint('d'), joint('a')], hardware: joint('b'), provided: joint('f') }
}
const JOINTS: Readonly<Record<Engine, Joints>> = {
  Blink: jointsFor('Blink'),
  Gecko: jointsFor('Gecko'),
  WebKit: jointsFor('WebKit'),
  other: jointsFor('other'),
}

export function prepareVisit(visited: Visited): SeenVisit {
  const { attributes, atMs, ip, asn, isPrivate, statistics, totals, partitions } = visited
  const chances = chancesFor(attributes)
  const mobile = attributes.deviceType === 'mobile' || attributes.deviceType === 'tablet'
  const { visitors } = statistics
  const { lineHash, subnetHash, masked } = partsOf(ip)
  // One by one: copying the rest of an object costs more than comparing a visitor.
  return {
    attributes,
    atMs,
    ip,
    asn,
    isPrivate,
    statistics,
    totals,
    partitions,
    returns: returnsOf(statistics, isPrivate),
    line: lineHash,
    subnet: subnetHash,
    provider: providerOf(ip, asn),
    masked,
    chances,
    alike: [],
    weights: [],
    devices: (DEVICES_ASSUMED * DEVICES_VISITORS) / (DEVICES_VISITORS + visitors) + visitors * partitions,
    lookalikes: lookalikesUnseen(statistics, mobile ? LOOKALIKES_PHONE : LOOKALIKES_DESKTOP),
    joints: JOINTS[attributes.ua.engine],
  }
}

function weightsAt(seen: SeenVisit, age: number): Weights {
  const ready = seen.weights[age]
  if (ready !== undefined) return ready
  const { chances, statistics } = seen
  const same = roomForNumbers(chances.m.length)
  const different = roomForNumbers(chances.m.length)
  for (let i = 0; i < same.length; i++) {
    const m = keeping(statistics, chances.m[i] as number, i, age)
    same[i] = Math.log(m)
    different[i] = Math.log(1 - m) - (chances.unlike[i] as number)
  }
  const known = sameProvider(statistics, age)
  const networks = NETWORK_MATCHES.map((match) => {
    if (match !== ELSEWHERE && match !== SAME_PROVIDER) return Math.log(staying(statistics, match, age))
    return Math.log(staying(statistics, ELSEWHERE, age) * (match === SAME_PROVIDER ? known : 1 - known))
  })
  const made = { same, different, networks, versions: versionsAt(statistics, age) }
  seen.weights[age] = made
  return made
}

/** Chance that another device has the value of that position, of those that no key counts. */
function sharingAt({ chances, statistics }: SeenVisit, position: number, value: number | null | undefined): number {
  const assumed = 1 - Math.exp(chances.unlike[position] as number)
  return sharing(statistics.rarity, position - FIRST_VALUES, traitCode(value), assumed)
}

function alikeAt(seen: SeenVisit, match: NetworkMatch): readonly number[] {
  const ready = seen.alike[match]
  if (ready !== undefined) return ready
  const logs = (seen.chances.alike[match] as readonly number[]).slice()
  const { values } = seen.attributes.profile
  for (let i = FIRST_VALUES; i < logs.length; i++) {
    if (values[i] != null) logs[i] = Math.log(sharingAt(seen, i, values[i]))
  }
  seen.alike[match] = logs
  return logs
}

/**
 * Log of how many other devices would agree with the visit in all that a visitor agrees in, network included. Values hang
 * together, so their chances alone would make what is popular look rare: the visitors counted under a key that joins them
 * say how popular it is. `agreed` and `equal`: bits of positions, the latter where both are the same or unknown.
 */
function logAlike(seen: SeenVisit, agreed: number, equal: number, match: NetworkMatch): number {
  const { totals, devices, joints } = seen
  const logs = alikeAt(seen, match)
  let product = 0
  for (let i = 0; i < logs.length; i++) if ((agreed >> i) & 1) product += logs[i] as number
  const isWhole = ({ bits }: Joint): boolean => (equal & bits) === bits
  const logOf = ({ positions }: Joint): number => {
    let log = 0
    for (const i of positions) if ((agreed >> i) & 1) log += logs[i] as number
    return log
  }
  const others = (letter: string): number => Math.max(0, (totals[letter] ?? 1) - 1)

  // Here: as many as were seen here, of which as many agree as the chances say, or as have that look of all there are.
  if (match === SAME_ADDRESS) {
    let share = product
    for (const joint of joints.looks) {
      if (totals[joint.letter] === undefined || !isWhole(joint)) continue
      share = Math.max(share, Math.log(others(joint.letter) / devices) + product - logOf(joint))
    }
    return Math.log(others('c') + OTHERS_UNSEEN) + share
  }
  if (match === SAME_NETWORK) {
    const { hardware } = joints
    if (isWhole(hardware)) return Math.log(others('b') + OTHERS_UNSEEN) + product - logOf(hardware)
    return Math.log(devices * SHARED_NETWORK) + product
  }
  if (match === SAME_PROVIDER) {
    const { provided } = joints
    // Of one provider are no more than there are at all.
    const anywhere = logAlike(seen, agreed, equal, ELSEWHERE)
    if (totals.f === undefined || !isWhole(provided)) {
      return Math.min(anywhere, Math.log(devices * SHARED_PROVIDER) + product)
    }
    return Math.min(anywhere, Math.log(others('f') + OTHERS_UNSEEN) + product - logOf(provided))
  }
  let alike = Math.log(devices) + product
  for (const joint of joints.looks) {
    if (totals[joint.letter] === undefined || !isWhole(joint)) continue
    const log = logOf(joint)
    const unseen = Math.min(1, Math.max(seen.lookalikes, devices * Math.exp(log)))
    const counted = Math.log(others(joint.letter) + unseen) + product - log
    // How many have the whole look is counted: what is assumed of its parts says nothing beside that.
    if (joint.letter === 'e') return counted
    alike = Math.max(alike, counted)
  }
  return alike
}

/** Null when they cannot be one device. */
export function compare(visitor: VisitorState, exact: boolean, seen: SeenVisit): Compared | null {
  const known = visitor.profile
  const now = seen.attributes.profile
  if (known === null || known.os !== now.os || known.family !== now.family) return null
  const elapsedMs = seen.atMs - visitor.lastSeenAt
  const weights = weightsAt(seen, seenAgeOf(elapsedMs))
  const sameAtOtherScale = rescaled(known, now)
  // WebKit comes with the system: a newer browser on a changed system is one change, and the version accounts for it.
  const isWebKit = seen.attributes.ua.engine === 'WebKit'
  const isOneUpdate = isWebKit && (now.major ?? 0) > (known.major ?? Number.POSITIVE_INFINITY)
  let agreed = 0
  let equal = 0
  let log = 0
  let personal = 0
  const shared = alikeAt(seen, ELSEWHERE)
  // Another screen shows other colours in another frame: that is one change.
  const otherScreen = known.values[SCREEN] !== now.values[SCREEN] || known.values[RATIO] !== now.values[RATIO]
  for (let i = 0; i < now.values.length; i++) {
    const a = known.values[i] ?? null
    const b = now.values[i] ?? null
    if (a === b) equal |= 1 << i
    if (a === null || b === null) continue
    if (a === b || isAlternate(visitor, i, b) || (sameAtOtherScale && i === SCREEN)) {
      agreed |= 1 << i
      log += weights.same[i] as number
      if (i >= FIRST_VALUES) personal += (weights.same[i] as number) - (shared[i] as number)
    } else if (sameAtOtherScale && i === CANVAS) log += CANVAS_RESCALED
    else if (!(i === PLATFORM_VERSION && isOneUpdate) && !(otherScreen && (i === DISPLAY || i === FRAME))) {
      // Another device would have another value than this one, the surer the rarer this one is.
      const byRarity = i < FIRST_VALUES ? 0 : (seen.chances.unlike[i] as number) - Math.log(1 - sharingAt(seen, i, a))
      const against = (weights.different[i] as number) + byRarity
      log += against
      if (i >= FIRST_VALUES) personal += against
    }
  }
  const match = networkOf(visitor, seen.line, seen.subnet, seen.provider, seen.masked)
  log += weights.networks[match] as number
  log += versionRatio(weights.versions, known.major, now.major, elapsedMs)
  log += Math.log(seen.returns.odds * returningNow(seen.returns, visitor, elapsedMs))
  log -= logAlike(seen, agreed, equal, match)
  return { visitor, exact, nearby: match === SAME_ADDRESS || match === SAME_NETWORK, log, personal }
}
