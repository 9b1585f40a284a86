// How many events a key had in a window that ends now: exact while few are kept, by cells that widen with their age beyond.

import { DAY_MS } from '../../lib/durations.ts'
import { packNumber, putArray } from '../../lib/packing.ts'
import { roomFor, roomForNumbers } from '../../lib/room.ts'
import { readArray, readNumber } from '../../lib/unpacking.ts'

/** Events whose time is kept to the millisecond, the newest ones. */
export const EXACT_MAX = 128
/** So many of the oldest give up their time at once. */
const FOLDED = 64
/** So late an event may come and still be counted with all that came before it. */
export const LATE_MS = 600_000
/** Kept behind the newest event. */
export const KEPT_MS = DAY_MS + LATE_MS
/**
 * How wide a cell may be once all of it is so old: a thirtieth of the window whose edge it has yet to pass. Each width
 * divides the next, so that cells merge whole.
 */
const STEPS = [
  { widthMs: 1_800_000, ageMs: 3_600_000 },
  { widthMs: 120_000, ageMs: 300_000 },
  { widthMs: 10_000, ageMs: 0 },
] as const
const NARROWEST_MS = 10_000
const WIDEST_MS = 1_800_000

/** Events of `[from, from + width)`, milliseconds. */
export interface MomentCell {
  from: number
  width: number
  count: number
}

export interface Moments {
  /** Ascending. */
  times: number[]
  /** Ascending, all before the times. */
  cells: MomentCell[]
}

export const noMoments = (): Moments => ({ times: [], cells: [] })

const startOf = (at: number, widthMs: number): number => Math.floor(at / widthMs) * widthMs

const widthAt = (at: number, newest: number): number =>
  STEPS.find(({ widthMs, ageMs }) => startOf(at, widthMs) + widthMs <= newest - ageMs)?.widthMs ?? NARROWEST_MS

/** Index of the first time after `at`. */
function firstAfter(times: readonly number[], at: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] as number) > at) high = middle
    else low = middle + 1
  }
  return low
}

/** Cells as wide as their age allows, with `added` among them; what is older than a day goes. */
function fold(cells: readonly MomentCell[], added: readonly number[], newest: number): MomentCell[] {
  const counts = new Map<string, MomentCell>()
  const put = (at: number, count: number) => {
    const width = widthAt(at, newest)
    const from = startOf(at, width)
    const known = counts.get(`${from} ${width}`)
    if (known !== undefined) known.count += count
    else if (from + width > newest - KEPT_MS) counts.set(`${from} ${width}`, { from, width, count })
  }
  for (const { from, count } of cells) put(from, count)
  for (const at of added) put(at, 1)
  return [...counts.values()].sort((a, b) => a.from - b.from || a.width - b.width)
}

/** Among times that there are. False: it is too old to be kept. */
function insertTime(moments: Moments, at: number): boolean {
  const { times, cells } = moments
  const newest = times.at(-1) as number
  if (at >= newest) times.push(at)
  else if (at <= newest - KEPT_MS) return false
  // Times before the exact ones were folded: they must not seem exact again.
  else if (cells.length > 0 && at < (times[0] as number)) moments.cells = fold(cells, [at], newest)
  else times.splice(firstAfter(times, at), 0, at)
  return true
}

/** Adds an event. Changes the given moments; an event of KEPT_MS before the newest, or older, is left out. */
export function addMoment(moments: Moments, at: number): void {
  // Most keys keep one event: a list that grows has room for sixteen from its first.
  if (moments.times.length === 0) moments.times = [at]
  else if (!insertTime(moments, at)) return
  const { times } = moments
  const latest = times.at(-1) as number
  const gone = firstAfter(times, latest - KEPT_MS)
  if (gone > 0) times.splice(0, gone)
  if (moments.cells.length > 0 && (moments.cells[0] as MomentCell).from + WIDEST_MS <= latest - KEPT_MS) {
    moments.cells = moments.cells.filter(({ from, width }) => from + width > latest - KEPT_MS)
  }
  if (times.length > EXACT_MAX) moments.cells = fold(moments.cells, times.splice(0, FOLDED), latest)
}

/** Takes one event of that time out, if there is one. Changes the given moments; returns how many it took. */
export function removeMoment({ times, cells }: Moments, at: number): number {
  const place = firstAfter(times, at) - 1
  if (times[place] === at) {
    times.splice(place, 1)
    return 1
  }
  const cell = cells.find(({ from, width, count }) => at >= from && at < from + width && count > 0)
  if (cell === undefined) return 0
  cell.count--
  return 1
}

/** Takes as many events of that time out as there are, at most `count`. Changes the given moments; returns how many it took. */
export function removeCell({ times, cells }: Moments, { from, width, count }: MomentCell): number {
  let left = count
  for (const cell of cells) {
    if (cell.from >= from + width || cell.from + cell.width <= from) continue
    const taken = Math.min(left, cell.count)
    cell.count -= taken
    left -= taken
  }
  const first = firstAfter(times, from - 1)
  const taken = Math.min(left, firstAfter(times, from + width - 1) - first)
  if (taken > 0) times.splice(first, taken)
  return count - left + Math.max(0, taken)
}

/** How many events of cells lie after `after` and not after `at`: of a cell in part as much as the part is. */
function countCells(cells: readonly MomentCell[], after: number, at: number): number {
  // They do not overlap: what lies before one that is over is over.
  let first = cells.length
  while (first > 0 && (cells[first - 1] as MomentCell).from + (cells[first - 1] as MomentCell).width > after) first--
  let folded = 0
  for (let i = first; i < cells.length; i++) {
    const { from, width, count } = cells[i] as MomentCell
    const begin = Math.max(from, after)
    const end = Math.min(from + width, at)
    if (end > begin) folded += (count * (end - begin)) / width
  }
  return Math.round(folded)
}

/**
 * Events after `at - windowMs` and not after `at`. Exact as long as a day brings at most EXACT_MAX; beyond, wrong by at most
 * the events of one cell, which is a thirtieth of the window where they come evenly.
 */
export function countMoments({ times, cells }: Moments, at: number, windowMs: number): number {
  const after = at - windowMs
  const { length } = times
  // Mostly nothing is later, and all or nothing is in the window.
  const until = length === 0 || (times[length - 1] as number) <= at ? length : firstAfter(times, at)
  const from = length === 0 || (times[0] as number) > after ? 0 : firstAfter(times, after)
  const exact = until - from
  return cells.length === 0 ? exact : exact + countCells(cells, after, at)
}

/** Small when packed: the newest time, then steps back, then three numbers per cell. */
export function putMoments({ times, cells }: Moments): void {
  const newest = times.at(-1) ?? 0
  putArray(3)
  packNumber(newest)
  const steps = Math.max(0, times.length - 1)
  putArray(steps)
  for (let i = 0; i < steps; i++) packNumber(newest - (times[i] as number))
  putArray(3 * cells.length)
  for (const { from, width, count } of cells) {
    packNumber(from)
    packNumber(width)
    packNumber(count)
  }
}

/** Reads what putMoments wrote. */
export function readMoments(): Moments {
  readArray()
  const newest = readNumber()
  const steps = readArray()
  // With room for the event that it is read for.
  const times = roomForNumbers(steps + 2)
  times.length = steps + 1
  for (let i = 0; i < steps; i++) times[i] = newest - readNumber()
  times[steps] = newest
  const cells = roomFor<MomentCell>(Math.floor(readArray() / 3))
  for (let i = 0; i < cells.length; i++) cells[i] = { from: readNumber(), width: readNumber(), count: readNumber() }
  // Whoever had the exact ones may have been erased.
  return { times: newest === 0 ? [] : times, cells }
}
