// A visitor in its partition's checkpoint: its match keys and counters beside its packed state, so that a change of keys is
// seen, and the others are counted, without decoding the state.

import {
  beginPacking,
  closeBytes,
  openBytes,
  packNumber,
  packText,
  putArray,
  putNull,
  putNumbers,
  putRaw,
  putTexts,
  takePacked,
} from '../lib/packing.ts'
import {
  beginReading,
  readArray,
  readBytes,
  readNumber,
  readNumbers,
  readText,
  readTexts,
  skipNull,
} from '../lib/unpacking.ts'

export interface HeldVisitor {
  /** Index keys of the latest visit. */
  readonly keys: readonly string[]
  /** Those of looks it had before, latest last, under which it is still found; none of them is among `keys`. */
  readonly earlierKeys: readonly string[]
  readonly state: Uint8Array
  /** The visitor it was merged into, whose events its visits are; itself where others were merged into it; null: neither. */
  readonly survivor: string | null
  /**
   * Survivors it had before, which are aliases by now and for ever: whoever pauses may order one of those merges once more. Of those
   * who were erased, `erasedId`.
   */
  readonly former: readonly string[]
  /** What the engine counts of the visitor; empty when nothing. */
  readonly counters: Uint8Array
  /** Who was split off, newest last. */
  readonly parted: readonly Parted[]
}

/** Tokens of a visitor that are another's since a split. Generations as far as they were given out before `upTo`, milliseconds. */
export interface Parted {
  /** null: erased since, so that they are nobody's. */
  readonly to: string | null
  readonly upTo: number
  /** Moments of the visits in which they were given out, milliseconds. */
  readonly issued: readonly number[]
  readonly generations: readonly number[]
}

/** The newest are kept: tokens of those before count as the visitor's own again. */
export const PARTED_MAX = 16

/** Whoever has more leaves the index under the oldest of them. */
export const EARLIER_KEYS_MAX = 20

/** Begins the one text behind the keys that has the earlier ones, which no key begins with. */
const EARLIER = '-'
/** A visit adds one key of each kind at most, none shorter than this with the space behind it. */
const MANY_CHARS = (EARLIER_KEYS_MAX - 7) * 10

const NONE = new Uint8Array(0)

/** What a record says besides its keys, state and counters. */
export type More = Partial<Omit<HeldVisitor, 'keys' | 'state' | 'counters'>>

const NOBODY: readonly string[] = []
const NOTHING_PARTED: readonly Parted[] = []

function putKeys(keys: readonly string[], earlierKeys: readonly string[]): void {
  putArray(keys.length + (earlierKeys.length === 0 ? 0 : 1))
  for (const key of keys) packText(key)
  if (earlierKeys.length > 0) packText(`${EARLIER}${earlierKeys.join(' ')}`)
}

/** What ends with nothing said is left out. */
function countParts(hasCounters: boolean, survivor: string | null, parted: number, former: number): number {
  if (former > 0) return 6
  if (parted > 0) return 5
  if (survivor !== null) return 4
  return hasCounters ? 3 : 2
}

/** As the kv and the events log carry it. `putState` and `putCounters` write what is packed in it; null: nothing was counted. */
export function packRecord<S, C>(
  keys: readonly string[],
  state: S,
  putState: (state: S) => void,
  counters: C | null,
  putCounters: (counters: C) => void,
  { survivor = null, parted = NOTHING_PARTED, former = NOBODY, earlierKeys = NOBODY }: More,
): Uint8Array {
  const parts = countParts(counters !== null, survivor, parted.length, former.length)
  beginPacking()
  putArray(parts)
  putKeys(keys, earlierKeys)
  const stateAt = openBytes()
  putState(state)
  closeBytes(stateAt)
  if (parts === 2) return takePacked()
  const countersAt = openBytes()
  if (counters !== null) putCounters(counters)
  closeBytes(countersAt)
  if (parts === 3) return takePacked()
  if (survivor === null) putNull()
  else packText(survivor)
  if (parts === 4) return takePacked()
  putArray(parted.length)
  for (const { to, upTo, issued, generations } of parted) {
    putArray(4)
    if (to === null) putNull()
    else packText(to)
    packNumber(upTo)
    putNumbers(issued)
    putNumbers(generations)
  }
  if (parts === 6) putTexts(former)
  return takePacked()
}

/** The same of what is packed. */
export function packHeldVisitor(
  keys: readonly string[],
  state: Uint8Array,
  { counters = NONE, ...more }: More & { readonly counters?: Uint8Array } = {},
): Uint8Array {
  return packRecord(keys, state, putRaw, counters.length === 0 ? null : counters, putRaw, more)
}

function readParted(): readonly Parted[] {
  const parted: Parted[] = []
  for (let left = readArray(); left > 0; left--) {
    readArray()
    const to = skipNull() ? null : readText()
    parted.push({ to, upTo: readNumber(), issued: readNumbers(), generations: readNumbers() })
  }
  return parted
}

/**
 * By default all of the bytes are the record. What it says of state and counters are views of them. Whoever knows which keys it may
 * have spares their texts.
 */
export function unpackHeldVisitor(
  packed: Uint8Array,
  first = 0,
  behind = packed.length,
  likelyKeys: readonly string[] = NOBODY,
): HeldVisitor {
  beginReading(packed, first, behind)
  const parts = readArray()
  const keys = readTexts(likelyKeys)
  const isEarlier = keys.length > 0 && (keys[keys.length - 1] as string).startsWith(EARLIER)
  const earlierKeys = isEarlier ? (keys.pop() as string).slice(EARLIER.length).split(' ') : NOBODY
  return {
    keys,
    earlierKeys,
    state: readBytes(),
    counters: parts > 2 ? readBytes() : NONE,
    survivor: parts > 3 && !skipNull() ? readText() : null,
    parted: parts > 4 ? readParted() : NOTHING_PARTED,
    former: parts > 5 ? readTexts() : NOBODY,
  }
}

/** Every key under which the index has the visitor. */
export const allIndexKeysOf = ({ keys, earlierKeys }: Pick<HeldVisitor, 'keys' | 'earlierKeys'>): readonly string[] =>
  earlierKeys.length === 0 ? keys : [...keys, ...earlierKeys]

/** Mostly they are the same in the same order. */
function areAmong(some: readonly string[], keys: readonly string[]): boolean {
  for (let i = 0; i < some.length; i++) {
    const key = some[i] as string
    if (key !== keys[i] && !keys.includes(key)) return false
  }
  return true
}

/** What its earlier keys are once it is seen with `keys`, however many. */
export function earlierKeysWith(
  before: Pick<HeldVisitor, 'keys' | 'earlierKeys'>,
  keys: readonly string[],
): readonly string[] {
  if (before.earlierKeys.length === 0 && areAmong(before.keys, keys)) return NOBODY
  return [...before.earlierKeys, ...before.keys].filter((key) => !keys.includes(key))
}

// Forms of MessagePack that a record begins with: an array of parts, in it one of texts, and bytes.
const ARRAY_OF_4 = 0x94
const FIX_ARRAY = 0x90
const FIX_ARRAY_MAX = 0x9f
const FIX_STR = 0xa0
const FIX_STR_MAX = 0xbf
const STR_8 = 0xd9
const STR_16 = 0xda
const BIN_8 = 0xc4
const BIN_16 = 0xc5

/** By the first byte of a packed record: whether it names a survivor, or says something about others at all. */
export const mayHaveSurvivor = (firstByte: number): boolean => firstByte >= ARRAY_OF_4

/**
 * Reads the state in a packed record where it lies: making texts of the keys before it, and a view of it, takes as long as all else
 * there is to reading it.
 */
export function readState<T>(
  packed: Uint8Array,
  read: (bytes: Uint8Array, first: number, behind: number) => T,
  start = 0,
  end = packed.length,
): T {
  const byteAt = (at: number) => packed[at] ?? 0
  const keys = byteAt(start + 1)
  let at = start + 2
  let isPlain = keys >= FIX_ARRAY && keys <= FIX_ARRAY_MAX
  for (let left = keys - FIX_ARRAY; isPlain && left > 0; left--) {
    const form = byteAt(at)
    if (form >= FIX_STR && form <= FIX_STR_MAX) at += 1 + form - FIX_STR
    else if (form === STR_8) at += 2 + byteAt(at + 1)
    else if (form === STR_16) at += 3 + byteAt(at + 1) * 256 + byteAt(at + 2)
    else isPlain = false
  }
  if (isPlain && packed[at] === BIN_8) return read(packed, at + 2, at + 2 + byteAt(at + 1))
  if (isPlain && packed[at] === BIN_16) return read(packed, at + 3, at + 3 + byteAt(at + 1) * 256 + byteAt(at + 2))
  const { state } = unpackHeldVisitor(packed, start, end)
  return read(state, 0, state.length)
}

/** The oldest earlier keys, which are more than are kept. */
export const tooEarly = (earlierKeys: readonly string[]): readonly string[] =>
  earlierKeys.length <= EARLIER_KEYS_MAX ? NOBODY : earlierKeys.slice(0, earlierKeys.length - EARLIER_KEYS_MAX)

/** Whether a packed record may have about as many earlier keys as are kept: by their length. */
export function mayHaveManyKeys(packed: Uint8Array, start = 0, end = packed.length): boolean {
  const byteAt = (at: number) => (at < end ? (packed[at] ?? 0) : 0)
  const keys = byteAt(start + 1)
  if (keys < FIX_ARRAY || keys > FIX_ARRAY_MAX) return true
  let at = start + 2
  for (let left = keys - FIX_ARRAY; left > 0; left--) {
    const form = byteAt(at)
    if (form >= FIX_STR && form <= FIX_STR_MAX) at += 1 + form - FIX_STR
    else return form !== STR_8 || byteAt(at + 1) >= MANY_CHARS
  }
  return false
}

/** Whose a token is by what the record of the visitor it names says: that visitor's, or one's that was split off; null: nobody's. */
export function ownerOfToken(
  { parted }: Pick<HeldVisitor, 'parted'>,
  token: { readonly visitorId: string; readonly generation: number; readonly issuedAt: number },
): string | null {
  for (const { to, upTo, issued, generations } of parted) {
    const isOfMoved = generations.includes(token.generation) && token.issuedAt <= upTo
    if (isOfMoved || issued.includes(token.issuedAt)) return to
  }
  return token.visitorId
}
