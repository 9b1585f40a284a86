// Ranges of addresses as they were listed, made into what a binary search needs: sorted starts, each with the value that
// holds from there to the next. Where ranges overlap the one that begins later wins, of those the shorter, of equal ones
// the first that was added: for CIDR ranges that is the most specific. One without a name never hides one that has a name.

import { BadSource } from './sources.ts'

/** Starts are `words` numbers of 32 bits each, big end first; value 0 stands for nothing. */
export interface Segments {
  readonly words: number
  readonly starts: Uint32Array
  readonly values: Uint32Array
}

export interface Ranges {
  readonly v4: Segments
  readonly v6: Segments
  readonly asns: Segments
  /** Value n stands for the text at n − 1. */
  readonly texts: readonly string[]
  /** How many ranges and AS numbers went in. */
  readonly entries: number
}

const ENTRIES_MAX = 33_554_432
const TEXTS_MAX = 4_194_304

const compare = (a: Uint32Array, at: number, b: Uint32Array, bt: number, words: number): number => {
  for (let i = 0; i < words; i++) {
    const difference = (a[at + i] as number) - (b[bt + i] as number)
    if (difference !== 0) return difference
  }
  return 0
}

function createFamily(words: number) {
  let starts = new Uint32Array(1_024 * words)
  let ends = new Uint32Array(1_024 * words)
  let values = new Uint32Array(1_024)
  let count = 0
  let inOrder = true

  function grow(): void {
    const longer = (array: Uint32Array) => {
      const next = new Uint32Array(array.length * 2)
      next.set(array)
      return next
    }
    starts = longer(starts)
    ends = longer(ends)
    values = longer(values)
  }

  function add(first: readonly number[], last: readonly number[], value: number): void {
    if (count === values.length) grow()
    const at = count * words
    for (let i = 0; i < words; i++) {
      starts[at + i] = first[i] as number
      ends[at + i] = last[i] as number
    }
    if (compare(starts, at, ends, at, words) > 0) throw new RangeError('a range ends before it begins')
    values[count] = value
    if (count > 0 && compare(starts, at, ends, at - words, words) <= 0) inOrder = false
    count++
  }

  function sorted(): Uint32Array {
    const order = Uint32Array.from({ length: count }, (_, i) => i)
    if (inOrder) return order
    return order.sort(
      (a, b) =>
        compare(starts, a * words, starts, b * words, words) ||
        compare(ends, b * words, ends, a * words, words) ||
        b - a,
    )
  }

  function finish(): Segments {
    const order = sorted()
    const out = { starts: new Uint32Array((2 * count + 1) * words), values: new Uint32Array(2 * count + 1), length: 0 }
    const from = new Uint32Array(words)

    function emit(array: Uint32Array, at: number, value: number): void {
      const last = out.length - 1
      if (last >= 0 && compare(out.starts, last * words, array, at, words) === 0) {
        out.values[last] = value
        const before = last === 0 ? 0 : (out.values[last - 1] as number)
        if (before === value) out.length--
        return
      }
      if ((last < 0 ? 0 : (out.values[last] as number)) === value) return
      for (let i = 0; i < words; i++) out.starts[out.length * words + i] = array[at + i] as number
      out.values[out.length++] = value
    }

    const open: number[] = []
    /** Ends the innermost range and those that ended unseen below it; what is left of an outer one goes on. */
    function endInnermost(): void {
      const ended = open.pop() as number
      while (open.length > 0 && compare(ends, (open.at(-1) as number) * words, ends, ended * words, words) <= 0)
        open.pop()
      for (let i = 0; i < words; i++) from[i] = ends[ended * words + i] as number
      for (let i = words - 1; i >= 0; i--) {
        from[i] = (from[i] as number) + 1
        if (from[i] !== 0) break
        // Nothing follows the last address of all.
        if (i === 0) return
      }
      emit(from, 0, open.length === 0 ? 0 : (values[open.at(-1) as number] as number))
    }

    for (const i of order) {
      while (open.length > 0 && compare(ends, (open.at(-1) as number) * words, starts, i * words, words) < 0)
        endInnermost()
      open.push(i)
      emit(starts, i * words, values[i] as number)
    }
    while (open.length > 0) endInnermost()
    return { words, starts: out.starts.slice(0, out.length * words), values: out.values.slice(0, out.length) }
  }

  return { add, finish, count: () => count }
}

/** What `upper` says, and where it says nothing what `lower` does. */
function overlay(upper: Segments, lower: Segments): Segments {
  const { words } = upper
  if (upper.values.length === 0) return lower
  if (lower.values.length === 0) return upper
  const starts = new Uint32Array(upper.starts.length + lower.starts.length)
  const values = new Uint32Array(upper.values.length + lower.values.length)
  let length = 0
  let [u, l] = [0, 0]
  while (u < upper.values.length || l < lower.values.length) {
    const order =
      u === upper.values.length
        ? 1
        : l === lower.values.length
          ? -1
          : compare(upper.starts, u * words, lower.starts, l * words, words)
    const [from, at] = order <= 0 ? [upper.starts, u * words] : [lower.starts, l * words]
    if (order <= 0) u++
    if (order >= 0) l++
    const value = (u > 0 && upper.values[u - 1]) || (l > 0 && lower.values[l - 1]) || 0
    if ((length === 0 ? 0 : values[length - 1]) === value) continue
    for (let i = 0; i < words; i++) starts[length * words + i] = from[at + i] as number
    values[length++] = value
  }
  return { words, starts: starts.slice(0, length * words), values: values.slice(0, length) }
}

function createLayers(words: number) {
  const named = createFamily(words)
  const unnamed = createFamily(words)
  return {
    layer: (isNamed: boolean) => (isNamed ? named : unnamed),
    count: () => named.count() + unnamed.count(),
    finish: () => overlay(named.finish(), unnamed.finish()),
  }
}

export interface RangesBuilder {
  /** The value that stands for a text; the empty one stands for a range without a name. */
  intern(text: string): number
  /** Both ends included; a reversed range throws RangeError, as does the next one beyond the bound (BadSource). */
  addV4(first: number, last: number, value: number): void
  /** Ends are four numbers of 32 bits. */
  addV6(first: readonly number[], last: readonly number[], value: number): void
  addAsn(asn: number, value: number): void
  entries(): number
  finish(): Ranges
}

export function createRanges(): RangesBuilder {
  const v4 = createLayers(1)
  const v6 = createLayers(4)
  const asns = createLayers(1)
  const texts = new Map<string, number>()
  let blank = 0
  const entries = () => v4.count() + v6.count() + asns.count()
  function room(): void {
    if (entries() >= ENTRIES_MAX) throw new BadSource(`more than ${ENTRIES_MAX} entries`)
  }
  return {
    intern(text) {
      const known = texts.get(text)
      if (known !== undefined) return known
      if (texts.size >= TEXTS_MAX) throw new BadSource(`more than ${TEXTS_MAX} different places or names`)
      texts.set(text, texts.size + 1)
      if (text === '') blank = texts.size
      return texts.size
    },
    addV4(first, last, value) {
      room()
      v4.layer(value !== blank).add([first], [last], value)
    },
    addV6(first, last, value) {
      room()
      v6.layer(value !== blank).add(first, last, value)
    },
    addAsn(asn, value) {
      room()
      asns.layer(value !== blank).add([asn], [asn], value)
    },
    entries,
    finish: () => ({
      v4: v4.finish(),
      v6: v6.finish(),
      asns: asns.finish(),
      texts: [...texts.keys()],
      entries: entries(),
    }),
  }
}
