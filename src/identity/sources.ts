// From which networks the lessons of late came: nobody teaches more than a small share, however many visitors are kept at one
// network. Networks are known by sixteen bits of a hash: enough to count, not to tell who it was.

import { hash32 } from '../domain/ids.ts'
import { partsOf } from './address.ts'

/** Networks counted; the one that taught least makes room for another. */
const SOURCES_KEPT = 24
/** Lessons after which counts halve. */
const LESSONS_MAX = 400
/** What one network may teach of these. */
const SHARE_MAX = 0.05
/** With few lessons everybody's share is small. */
const LESSONS_MIN = 2

/** [lessons, then network and count after another]; 0 where there is none. */
export const newSources = (): number[] => new Array<number>(1 + SOURCES_KEPT * 2).fill(0)

/** Of a canonical address; never 0. */
export const sourceOf = (ip: string): number => 1 + (hash32(partsOf(ip).subnet) & 0xffff)

const placeOf = (sources: readonly number[], source: number): number => {
  for (let i = 1; i < sources.length; i += 2) if (sources[i] === source) return i
  return -1
}

/** Whether a lesson from that network would not be one too many. */
export function mayTeach(sources: readonly number[], source: number): boolean {
  const place = placeOf(sources, source)
  if (place < 0) return true
  return (sources[place + 1] as number) < Math.max(LESSONS_MIN, SHARE_MAX * (sources[0] as number))
}

/** CHANGES what is given. */
export function noteSource(sources: number[], source: number): void {
  let place = placeOf(sources, source)
  if (place < 0) {
    place = 1
    for (let i = 3; i < sources.length; i += 2)
      if ((sources[i + 1] as number) < (sources[place + 1] as number)) place = i
    sources[place] = source
    sources[place + 1] = 0
  }
  sources[place + 1] = (sources[place + 1] as number) + 1
  sources[0] = (sources[0] as number) + 1
  if (sources[0] <= LESSONS_MAX) return
  sources[0] >>= 1
  for (let i = 2; i < sources.length; i += 2) sources[i] = (sources[i] as number) >> 1
}
