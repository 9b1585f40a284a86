// A record that turned out to hold visits of two devices: the new visitor as its visits make it, and the record without them, as
// far as what is stored can be told apart.

import type { Device, StoredEvent } from '../domain/event.ts'
import { hash53 } from '../domain/ids.ts'
import { lineOf, maskIp } from '../domain/ip.ts'
import type { Parting } from '../records/splits.ts'
import type { Attributes } from './attributes.ts'
import { addAccount, withoutAccounts } from './linked-accounts.ts'
import { newVisitor, recordVerdict, recordVisit, type VisitorState } from './visitor.ts'

/** What is read of an event to part visitors. */
export type PartedEvent = Pick<StoredEvent, 'requestId' | 'timestamp' | 'device' | 'ip' | 'linkedId' | 'verdict'> & {
  readonly identity: Pick<StoredEvent['identity'], 'method' | 'generation'>
}

const familyOf = (browser: string): string => browser.replace(/ \d+$/, '')
/** Of all attributes a visit leaves its looks alone, unless the browser hides: what the devices looked like is not guessed. */
const NO_LOOKS = {
  profile: null,
  incognito: false,
  privacyNoise: false,
  claims: { incognito: null },
} as unknown as Attributes

/** A visitor of these visits, oldest first, without looks to be found by. */
export function visitorOfEvents(id: string, events: readonly PartedEvent[]): VisitorState {
  let state = newVisitor(id, events[0]?.timestamp ?? 0)
  for (const event of events) {
    const { timestamp: atMs, device, ip, linkedId } = event
    const { method, generation } = event.identity
    const token = method === 'token' ? { visitorId: id, generation, issuedAt: atMs } : null
    // People said whose the visits are: how sure the link to the other visitor was is of no account.
    const sure = { method, token, generation, confidence: 1, linkedId }
    state = recordVisit(state, { atMs, ip: ip.address, attributes: NO_LOOKS, device, ...sure })
    recordVerdict(state, event.verdict)
  }
  return state
}

/** What a set of visits had, as records keep it. */
export interface VisitTraces {
  readonly accounts: ReadonlySet<number>
  readonly ips: ReadonlySet<string>
  readonly networks: ReadonlySet<number>
  readonly devices: ReadonlySet<string>
}

const deviceKey = (platform: string, browser: string, gpu: string | null): string =>
  JSON.stringify([platform, familyOf(browser), gpu])

export function tracesOf(
  visits: readonly {
    readonly address: string
    readonly linkedId: string | null
    readonly device: Pick<Device, 'platform' | 'browser' | 'gpu'>
  }[],
): VisitTraces {
  const accounts: { hashes: number[]; full: boolean } = { hashes: [], full: false }
  for (const { linkedId } of visits) if (linkedId !== null) addAccount(accounts, linkedId)
  return {
    accounts: new Set(accounts.hashes),
    ips: new Set(visits.map(({ address }) => maskIp(address))),
    networks: new Set(visits.map(({ address }) => hash53(lineOf(address)))),
    devices: new Set(visits.map(({ device }) => deviceKey(device.platform, device.browser, device.gpu))),
  }
}

/** What only the moved visits had. */
export function goneWith(moved: VisitTraces, rest: VisitTraces): Parting['gone'] {
  const only = <T>(some: ReadonlySet<T>, others: ReadonlySet<T>): T[] => [...some].filter((one) => !others.has(one))
  return {
    accounts: only(moved.accounts, rest.accounts),
    ips: only(moved.ips, rest.ips),
    networks: only(moved.networks, rest.networks),
    devices: only(moved.devices, rest.devices).map((key) => JSON.parse(key) as [string, string, string | null]),
  }
}

/** What is known of the visits that go. */
export interface LeavingVisits {
  readonly visits: number
  /** Milliseconds. */
  readonly firstAt: number
  readonly lastAt: number
  readonly moved: VisitorState
  readonly parting: Parting | null
}

/** The record without those visits. Changes nothing it is given. */
export function withoutVisits(state: VisitorState, leaving: LeavingVisits): VisitorState {
  const { visits, firstAt, lastAt, moved, parting } = leaving
  const left = Math.max(0, state.totalVisits - visits)
  if (left === 0) return { ...newVisitor(state.id, state.firstSeenAt), generation: state.generation }
  const { verdicts } = moved
  const wasLatest = lastAt >= state.lastSeenAt
  const counted = {
    ...state,
    // A record looks like its latest visit, and the look goes where that goes.
    profile: wasLatest ? null : state.profile,
    totalVisits: left,
    tokenVisits: Math.max(0, state.tokenVisits - moved.tokenVisits),
    privateVisits: Math.min(state.privateVisits, left),
    verdicts: {
      allow: Math.max(0, state.verdicts.allow - verdicts.allow),
      challenge: Math.max(0, state.verdicts.challenge - verdicts.challenge),
      block: Math.max(0, state.verdicts.block - verdicts.block),
    },
  }
  // Others came meanwhile, and what they brought may be what was thought to be gone.
  if (parting === null || parting.rest === null || parting.totalVisits !== state.totalVisits) return counted
  const { rest, gone } = parting
  const isGone = new Set(gone.devices.map(([platform, family, gpu]) => deviceKey(platform, family, gpu)))
  const generation = Math.max(1, Math.min(state.generation, rest.generation))
  return {
    ...counted,
    firstSeenAt: firstAt <= state.firstSeenAt ? rest.firstSeenAt : state.firstSeenAt,
    lastSeenAt: wasLatest ? rest.lastSeenAt : state.lastSeenAt,
    lastVerdict: wasLatest ? rest.lastVerdict : state.lastVerdict,
    generation,
    confirmedGeneration: Math.min(state.confirmedGeneration, generation),
    generationChance: generation < state.generation ? 1 : state.generationChance,
    ...(state.refutedTo > generation ? { refutedFrom: 0, refutedTo: 0, olderAt: 0 } : {}),
    networks: state.networks.filter(({ ip }) => !gone.networks.includes(ip)),
    ips: state.ips.filter((ip) => !gone.ips.includes(ip)),
    devices: state.devices.filter(({ platform, browser, gpu }) => !isGone.has(deviceKey(platform, browser, gpu))),
    accounts: withoutAccounts(state.accounts, gone.accounts),
  }
}
