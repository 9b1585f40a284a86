// What is kept of a visitor between visits. Every part is bounded: a visitor of ten years is a few kilobytes at most as stored
// bytes, a usual one below 600.

import type { Device, IdentityMethod, Verdict } from '../domain/event.ts'
import type { TokenClaims } from '../domain/identify.ts'
import { DAY_MS } from '../lib/durations.ts'
import { partsOf } from './address.ts'
import type { Attributes } from './attributes.ts'
import { recordIssue, recordReturn } from './generations.ts'
import { addAccount, countAccounts, type LinkedAccounts } from './linked-accounts.ts'
import { CANVAS, MADE_UP, noValues, type Profile, RATIO, SCREEN, TIMEZONE } from './profile.ts'
import { providerOf, withProvider } from './provider.ts'

export const NETWORKS_MAX = 4
export const DEVICES_MAX = 10
export const IPS_MAX = 20
const ALTERNATES_MAX = 2
/** Full addresses (as hashes) are forgotten this long after their last visit. */
export const NETWORK_KEPT_MS = 30 * DAY_MS

/** A network the visitor came from: line and network. Hashes, since full addresses are kept only as long as retention allows. */
export interface SeenNetwork {
  ip: number
  subnet: number
  lastAt: number
}

export interface SeenDevice {
  platform: string
  /** Family and major version as last seen. */
  browser: string
  gpu: string | null
}

/** Values of profile positions that change back and forth on one device: docked screens, zoom, travel. */
export const ALTERNATING = [SCREEN, RATIO, TIMEZONE, CANVAS] as const

export interface VisitorState {
  readonly id: string
  /** Milliseconds; the earliest and latest event time, whatever the order in which events came. */
  firstSeenAt: number
  lastSeenAt: number
  totalVisits: number
  tokenVisits: number
  /** The newest token generation given out, and the newest one a later visit brought back. */
  generation: number
  confirmedGeneration: number
  /** Generations in this range belong to another device: an older storage turned out to be alive. 0 when none. */
  refutedFrom: number
  refutedTo: number
  /** When the newest generation was given out, and when an older one last came back after that; 0 when it did not. */
  generationAt: number
  olderAt: number
  /** How sure it was that the newest generation went to this visitor: that of the link it was given out with, 1 for the first. */
  generationChance: number
  /** Whether that went to a window that said it is not private. */
  generationLasts: boolean
  privateVisits: number
  /** How likely nobody had been here before when it was new: a device that was not recognised gets a second record. */
  newness: number
  /** After which absences it taught, a bit for each (observation.ts). */
  taught: number
  profile: Profile | null
  /** Newest first, one list per position of ALTERNATING. */
  alternates: number[][]
  /** Newest first. */
  networks: SeenNetwork[]
  /** As providerOf tells them, newest first. */
  providers: number[]
  /** Most recently seen first. */
  devices: SeenDevice[]
  /** Masked, most recently seen first. */
  ips: string[]
  verdicts: Record<Verdict, number>
  lastVerdict: Verdict | null
  accounts: LinkedAccounts
}

/** What of a visitor says when its device was here, and whether that is doubted. */
export type Life = Pick<
  VisitorState,
  'firstSeenAt' | 'lastSeenAt' | 'totalVisits' | 'privateVisits' | 'refutedFrom' | 'olderAt'
>

/** A visitor nobody has seen yet: `recordVisit` adds the first visit. */
export function newVisitor(id: string, atMs: number): VisitorState {
  return {
    id,
    firstSeenAt: atMs,
    lastSeenAt: atMs,
    totalVisits: 0,
    tokenVisits: 0,
    generation: 1,
    confirmedGeneration: 0,
    refutedFrom: 0,
    refutedTo: 0,
    generationAt: atMs,
    olderAt: 0,
    generationChance: 1,
    generationLasts: true,
    privateVisits: 0,
    newness: 1,
    taught: 0,
    profile: null,
    alternates: ALTERNATING.map(() => []),
    networks: [],
    providers: [],
    devices: [],
    ips: [],
    verdicts: { allow: 0, challenge: 0, block: 0 },
    lastVerdict: null,
    accounts: { hashes: [], full: false },
  }
}

export interface VisitFacts {
  readonly atMs: number
  /** Canonical. */
  readonly ip: string
  /** Whose it is; null or left out where nobody says. */
  readonly asn?: number | null
  readonly attributes: Attributes
  readonly device: Device
  readonly method: IdentityMethod
  /** The token of this visit when `method` is token, else null. */
  readonly token: TokenClaims | null
  /** The generation the answer's token carries (MatchResult.generation). */
  readonly generation: number
  /** How sure the answer is. */
  readonly confidence: number
  /** The bit of the lesson that was taken of it; 0: none. */
  readonly taught?: number
  readonly linkedId: string | null
}

function recordNetwork(state: VisitorState, ip: string, atMs: number): void {
  const { lineHash: hash, subnetHash } = partsOf(ip)
  const known = state.networks.find((network) => network.ip === hash)
  if (known === undefined) state.networks.push({ ip: hash, subnet: subnetHash, lastAt: atMs })
  else known.lastAt = Math.max(known.lastAt, atMs)
  const oldest = state.lastSeenAt - NETWORK_KEPT_MS
  // Mostly there is the one, which was seen right now.
  if (state.networks.length === 1 && (state.networks[0] as SeenNetwork).lastAt >= oldest) return
  state.networks = state.networks
    .filter((network) => network.lastAt >= oldest)
    .sort((a, b) => b.lastAt - a.lastAt)
    .slice(0, NETWORKS_MAX)
}

/** A visit of the past changes no order: what it adds goes to the end. */
function note<T>(list: T[], item: T, same: (a: T) => boolean, itemsMax: number, latest: boolean): void {
  const at = list.findIndex(same)
  if (!latest) {
    if (at < 0 && list.length < itemsMax) list.push(item)
    return
  }
  // Mostly it is the first one again.
  if (at === 0) {
    list[0] = item
    return
  }
  if (at > 0) list.splice(at, 1)
  list.unshift(item)
  if (list.length > itemsMax) list.pop()
}

const familyIn = (browser: string): string => browser.replace(/ \d+$/, '')

function recordDevice(state: VisitorState, device: Device, latest: boolean): void {
  const { platform, browser, gpu } = device
  const front = state.devices[0]
  if (front !== undefined && front.browser === browser && front.platform === platform && front.gpu === gpu) return
  const family = familyIn(browser)
  const same = (d: SeenDevice) => d.platform === platform && d.gpu === gpu && familyIn(d.browser) === family
  note(state.devices, { platform, browser, gpu }, same, DEVICES_MAX, latest)
}

function recordProfile(state: VisitorState, { profile: next, incognito, privacyNoise }: Attributes): void {
  const last = state.profile
  if (last === null) {
    state.profile = next
    return
  }
  // A token that turns up on another system was copied or the system is a pretence: the known profile stays.
  if (next.os !== last.os) return
  if (next.family !== last.family) {
    state.profile = next
    return
  }
  const isMadeUp = incognito || privacyNoise
  const merged = isMadeUp || saysLess(next, last) ? mergedProfile(last, next, isMadeUp) : next
  const { values } = merged
  for (let a = 0; a < ALTERNATING.length; a++) {
    const position = ALTERNATING[a] as number
    const old = last.values[position]
    const value = values[position]
    if (old === null || old === undefined || old === value) continue
    const list = (state.alternates[a] as number[]).filter((x) => x !== old && x !== value)
    state.alternates[a] = [old, ...list].slice(0, ALTERNATES_MAX)
  }
  state.profile = merged
}

/** Whether the earlier profile has something that this one does not say. */
function saysLess(next: Profile, last: Profile): boolean {
  if (next.gpuClass === null && last.gpuClass !== null) return true
  for (let i = 0; i < last.values.length; i++) if (last.values[i] != null && next.values[i] == null) return true
  return false
}

/** `isMadeUp`: the browser may have made up what private windows and noise do. */
function mergedProfile(
  last: Profile,
  { os, family, major, gpuClass, values: said }: Profile,
  isMadeUp: boolean,
): Profile {
  const values = noValues()
  for (let i = 0; i < values.length; i++) values[i] = said[i] ?? last.values[i] ?? null
  if (isMadeUp) for (const i of MADE_UP) values[i] = last.values[i] ?? values[i] ?? null
  return { os, family, major, gpuClass: gpuClass ?? last.gpuClass, values }
}

/**
 * Adds a visit. CHANGES AND RETURNS THE GIVEN STATE (copying would cost more than the rest); events may come in any order
 * of time, and only the latest one's profile stays.
 */
export function recordVisit(state: VisitorState, visit: VisitFacts): VisitorState {
  const { atMs, token } = visit
  const latest = atMs >= state.lastSeenAt
  state.firstSeenAt = Math.min(state.firstSeenAt, atMs)
  state.lastSeenAt = Math.max(state.lastSeenAt, atMs)
  if (visit.method === 'new' && state.totalVisits === 0) state.newness = visit.confidence
  state.totalVisits++
  if (visit.attributes.incognito) state.privateVisits++
  state.taught |= visit.taught ?? 0
  if (visit.method === 'token' && token !== null) {
    state.tokenVisits++
    recordReturn(state, token, atMs)
  }
  const { generation, confidence, attributes } = visit
  recordIssue(state, { generation, confidence, lasts: attributes.claims.incognito?.isPrivate === false }, atMs)
  if (latest || state.profile === null) recordProfile(state, visit.attributes)
  recordNetwork(state, visit.ip, atMs)
  const provider = providerOf(visit.ip, visit.asn ?? null)
  if (latest && state.providers[0] !== provider) state.providers = withProvider(state.providers, provider)
  recordDevice(state, visit.device, latest)
  const { masked } = partsOf(visit.ip)
  if (state.ips[0] !== masked) note(state.ips, masked, (ip) => ip === masked, IPS_MAX, latest)
  if (visit.linkedId !== null) addAccount(state.accounts, visit.linkedId)
  return state
}

/** Counts a verdict; changes the given state. */
export function recordVerdict(state: VisitorState, verdict: Verdict | null): void {
  state.lastVerdict = verdict
  if (verdict !== null) state.verdicts[verdict]++
}

/** `visitor.linkedAccounts` of rules and reads. */
export const linkedAccountsOf = (state: VisitorState): number => countAccounts(state.accounts)
