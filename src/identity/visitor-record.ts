// A visitor as stored bytes: a positional msgpack array, to which values are only ever added.

import { Packr } from 'msgpackr'
import type { Verdict } from '../domain/event.ts'
import { Unreadable } from '../lib/failures.ts'
import {
  beginPacking,
  packNumber,
  packText,
  putArray,
  putBoolean,
  putMaybe,
  putNull,
  putNumbers,
  putTexts,
  takePacked,
} from '../lib/packing.ts'
import { type PackedProfile, type Profile, unpackProfile } from './profile.ts'
import type { SeenNetwork, VisitorState } from './visitor.ts'

const LAYOUT = 1
/** Chances are kept as whole parts of this. */
const PARTS = 1_000
const packr = new Packr({ useRecords: false })

const VERDICTS: readonly Verdict[] = ['allow', 'challenge', 'block']
/** Items of the array that a visitor is packed as. */
const FIELDS = 27
const PROFILE_FIELDS = 4

function putProfile(profile: Profile | null): void {
  if (profile === null) {
    putNull()
    return
  }
  const { os, family, major, gpuClass, values } = profile
  putArray(PROFILE_FIELDS + values.length)
  packText(os)
  packText(family)
  putMaybe(major)
  if (gpuClass === null) putNull()
  else packText(gpuClass)
  for (let i = 0; i < values.length; i++) putMaybe(values[i] as number | null)
}

/** Writes the stored form: a positional msgpack array. */
export function putVisitor(s: VisitorState): void {
  const { firstSeenAt, networks, devices, verdicts, alternates } = s
  putArray(FIELDS)
  packNumber(LAYOUT)
  packText(s.id)
  packNumber(firstSeenAt)
  packNumber(s.lastSeenAt - firstSeenAt)
  packNumber(s.totalVisits)
  packNumber(s.tokenVisits)
  packNumber(s.generation)
  packNumber(s.confirmedGeneration)
  packNumber(s.refutedFrom)
  packNumber(s.refutedTo)
  putProfile(s.profile)
  putArray(alternates.length)
  for (const list of alternates) putNumbers(list)
  putArray(3 * networks.length)
  for (const { ip, subnet, lastAt } of networks) {
    packNumber(ip)
    packNumber(subnet)
    packNumber(lastAt - firstSeenAt)
  }
  putArray(devices.length)
  for (const { platform, browser, gpu } of devices) {
    putArray(3)
    packText(platform)
    packText(browser)
    if (gpu === null) putNull()
    else packText(gpu)
  }
  putTexts(s.ips)
  putArray(VERDICTS.length)
  for (const verdict of VERDICTS) packNumber(verdicts[verdict])
  if (s.lastVerdict === null) putNull()
  else packText(s.lastVerdict)
  putNumbers(s.accounts.hashes)
  putBoolean(s.accounts.full)
  packNumber(s.generationAt - firstSeenAt)
  putMaybe(s.olderAt === 0 ? null : s.olderAt - firstSeenAt)
  packNumber(s.privateVisits)
  packNumber(Math.round(s.generationChance * PARTS))
  packNumber(s.taught)
  putNumbers(s.providers)
  packNumber(Math.round(s.newness * PARTS))
  putBoolean(s.generationLasts)
}

/** The stored form, in memory of its own. */
export function packVisitor(s: VisitorState): Uint8Array<ArrayBuffer> {
  beginPacking()
  putVisitor(s)
  return takePacked()
}

type Packed = [
  layout: number,
  id: string,
  firstSeenAt: number,
  seenMs: number,
  totalVisits: number,
  tokenVisits: number,
  generation: number,
  confirmedGeneration: number,
  refutedFrom: number,
  refutedTo: number,
  profile: PackedProfile | null,
  alternates: number[][],
  networks: number[],
  devices: [string, string, string | null][],
  ips: string[],
  verdicts: [number, number, number],
  lastVerdict: Verdict | null,
  hashes: number[],
  full: boolean,
  generationMs?: number,
  olderMs?: number | null,
  privateVisits?: number,
  generationParts?: number,
  taught?: number,
  providers?: number[],
  newParts?: number,
  generationLasts?: boolean,
]

/** Reads what putVisitor wrote; throws Unreadable for anything else. Values added later read as null. */
export function unpackVisitor(bytes: Uint8Array): VisitorState {
  let packed: Packed
  try {
    packed = packr.unpack(bytes) as Packed
  } catch (cause) {
    throw new Unreadable('a visitor record is corrupt', { cause })
  }
  if (!Array.isArray(packed) || packed[0] !== LAYOUT) throw new Unreadable('a visitor record of another layout')
  const firstSeenAt = packed[2]
  const [p, flat, olderMs] = [packed[10], packed[12], packed[20] ?? null]
  const networks: SeenNetwork[] = []
  for (let i = 0; i + 2 < flat.length; i += 3) {
    networks.push({
      ip: flat[i] as number,
      subnet: flat[i + 1] as number,
      lastAt: firstSeenAt + (flat[i + 2] as number),
    })
  }
  // By position: taking whole lists apart costs half as much again as reading them, for each candidate of every visit.
  return {
    id: packed[1],
    firstSeenAt,
    lastSeenAt: firstSeenAt + packed[3],
    totalVisits: packed[4],
    tokenVisits: packed[5],
    generation: packed[6],
    confirmedGeneration: packed[7],
    refutedFrom: packed[8],
    refutedTo: packed[9],
    generationAt: firstSeenAt + (packed[19] ?? 0),
    olderAt: olderMs === null ? 0 : firstSeenAt + olderMs,
    generationChance: (packed[22] ?? PARTS) / PARTS,
    privateVisits: packed[21] ?? 0,
    taught: packed[23] ?? 0,
    providers: packed[24] ?? [],
    newness: (packed[25] ?? PARTS) / PARTS,
    generationLasts: packed[26] ?? true,
    profile: p === null ? null : unpackProfile(p),
    alternates: packed[11],
    networks,
    devices: packed[13].map((d) => ({ platform: d[0], browser: d[1], gpu: d[2] })),
    ips: packed[14],
    verdicts: { allow: packed[15][0], challenge: packed[15][1], block: packed[15][2] },
    lastVerdict: packed[16],
    accounts: { hashes: packed[17], full: packed[18] },
  }
}
