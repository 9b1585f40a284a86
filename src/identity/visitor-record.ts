// A visitor as stored bytes: a positional msgpack array, to which values are only ever added.

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
import { roomFor } from '../lib/room.ts'
import {
  beginReading,
  endReading,
  readArray,
  readBoolean,
  readMaybe,
  readName,
  readNumber,
  readNumbers,
  readText,
  readTexts,
  skipNull,
  skipValues,
} from '../lib/unpacking.ts'
import { noValues, type Profile } from './profile.ts'
import type { Life, SeenDevice, SeenNetwork, VisitorState } from './visitor.ts'

const LAYOUT = 1
/** Chances are kept as whole parts of this. */
const PARTS = 1_000

const VERDICTS: readonly Verdict[] = ['allow', 'challenge', 'block']
/** Items of the array that a visitor is packed as. */
const FIELDS = 27
/** Those of the first build. */
const FIELDS_MIN = 19
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

function readProfile(): Profile | null {
  if (skipNull()) return null
  const length = readArray() - PROFILE_FIELDS
  const os = readName()
  const family = readName()
  const major = readMaybe()
  const gpuClass = skipNull() ? null : readName()
  const values = noValues()
  // Values added later stay null.
  for (let i = 0; i < length; i++) {
    const value = readMaybe()
    if (i < values.length) values[i] = value
  }
  return { os, family, major, gpuClass, values }
}

function readLists(): number[][] {
  const lists = roomFor<number[]>(readArray())
  for (let i = 0; i < lists.length; i++) lists[i] = readNumbers()
  return lists
}

function readNetworks(firstSeenAt: number): SeenNetwork[] {
  const networks = roomFor<SeenNetwork>(Math.floor(readArray() / 3))
  for (let i = 0; i < networks.length; i++) {
    networks[i] = { ip: readNumber(), subnet: readNumber(), lastAt: firstSeenAt + readNumber() }
  }
  return networks
}

function readDevices(): SeenDevice[] {
  const devices = roomFor<SeenDevice>(readArray())
  for (let i = 0; i < devices.length; i++) {
    readArray()
    devices[i] = { platform: readName(), browser: readName(), gpu: skipNull() ? null : readName() }
  }
  return devices
}

function readVerdicts(): VisitorState['verdicts'] {
  readArray()
  return { allow: readNumber(), challenge: readNumber(), block: readNumber() }
}

/** Reads what putVisitor wrote; throws Unreadable for anything else. Values added later are as a new visitor has them. */
export function unpackVisitor(bytes: Uint8Array, first = 0, behind = bytes.length): VisitorState {
  beginReading(bytes, first, behind)
  const fields = readArray()
  if (fields < FIELDS_MIN || readNumber() !== LAYOUT) throw new Unreadable('a visitor record of another layout')
  const id = readText()
  const firstSeenAt = readNumber()
  // In the order in which they are written: a literal is filled in from above.
  const state: VisitorState = {
    id,
    firstSeenAt,
    lastSeenAt: firstSeenAt + readNumber(),
    totalVisits: readNumber(),
    tokenVisits: readNumber(),
    generation: readNumber(),
    confirmedGeneration: readNumber(),
    refutedFrom: readNumber(),
    refutedTo: readNumber(),
    profile: readProfile(),
    alternates: readLists(),
    networks: readNetworks(firstSeenAt),
    devices: readDevices(),
    ips: readTexts(),
    verdicts: readVerdicts(),
    lastVerdict: skipNull() ? null : (readName() as Verdict),
    accounts: { hashes: readNumbers(), full: readBoolean() },
    generationAt: firstSeenAt + (fields > 19 ? readNumber() : 0),
    olderAt: fields > 20 ? readOlderAt(firstSeenAt) : 0,
    privateVisits: fields > 21 ? readNumber() : 0,
    generationChance: (fields > 22 ? readNumber() : PARTS) / PARTS,
    taught: fields > 23 ? readNumber() : 0,
    providers: fields > 24 ? readNumbers() : [],
    newness: (fields > 25 ? readNumber() : PARTS) / PARTS,
    generationLasts: fields > 26 ? readBoolean() : true,
  }
  endReading()
  return state
}

/** Values that a look at its life leaves out: behind the visits, and behind the first refuted generation. */
const AFTER_VISITS = 3
const AFTER_REFUTED = 10

/** Reads when the visitor was here, and leaves the rest: it takes a third of the time. Throws as `unpackVisitor` does. */
export function readLife(bytes: Uint8Array, first = 0, behind = bytes.length): Life {
  beginReading(bytes, first, behind)
  const fields = readArray()
  if (fields < FIELDS_MIN || readNumber() !== LAYOUT) throw new Unreadable('a visitor record of another layout')
  skipValues(1)
  const firstSeenAt = readNumber()
  const lastSeenAt = firstSeenAt + readNumber()
  const totalVisits = readNumber()
  skipValues(AFTER_VISITS)
  const refutedFrom = readNumber()
  skipValues(AFTER_REFUTED)
  if (fields > 19) skipValues(1)
  const olderAt = fields > 20 ? readOlderAt(firstSeenAt) : 0
  return { firstSeenAt, lastSeenAt, totalVisits, refutedFrom, olderAt, privateVisits: fields > 21 ? readNumber() : 0 }
}

function readOlderAt(firstSeenAt: number): number {
  const olderMs = readMaybe()
  return olderMs === null ? 0 : firstSeenAt + olderMs
}
