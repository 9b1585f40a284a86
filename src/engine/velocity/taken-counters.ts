// The counters that a checkpoint stores, as they were when it took them: one behind the other in memory of their own, each made when it is
// asked for. Thousands that wait to be written would grow old in the heap.

import { SECOND_MS } from '../../lib/durations.ts'
import { withRoom } from '../../lib/room.ts'
import { VELOCITY_THERE_MS } from '../../records/partitions.ts'

export interface DirtyCounter {
  readonly key: number
  readonly packed: Uint8Array
  /** Taken so recently that the kv has it still. */
  readonly isRenewal: boolean
}

export interface TakenCounters extends Iterable<DirtyCounter> {
  /** Where the counters of a key are to be written, as many bytes as they have, before the next call; `takenS`: when they were taken before, -1: not by this owner. */
  place(key: number, takenS: number, length: number): number
  bytes(): Buffer
}

// What stands in front of the counters of a key.
const KEY_AT = 0
const IS_RENEWAL_AT = 8
const LENGTH_AT = 9
const FRONT_BYTES = 13
/** What most take, their front among it. */
const USUAL_BYTES = 96

/** `nowS` by the clock that `takenS` is of; `count`: how many there will be. */
export function createTakenCounters(nowS: number, count: number): TakenCounters {
  let bytes = Buffer.allocUnsafeSlow(USUAL_BYTES * (count + 1))
  let used = 0

  function* read(): Generator<DirtyCounter> {
    for (let at = 0; at < used; ) {
      const start = at + FRONT_BYTES
      const end = start + bytes.readUInt32LE(at + LENGTH_AT)
      const isRenewal = bytes[at + IS_RENEWAL_AT] === 1
      yield { key: bytes.readDoubleLE(at + KEY_AT), packed: bytes.subarray(start, end), isRenewal }
      at = end
    }
  }

  return {
    [Symbol.iterator]: read,
    place(key, takenS, length) {
      bytes = withRoom(bytes, used, FRONT_BYTES + length)
      const isRenewal = takenS >= 0 && (nowS - takenS) * SECOND_MS < VELOCITY_THERE_MS
      bytes.writeDoubleLE(key, used + KEY_AT)
      bytes[used + IS_RENEWAL_AT] = isRenewal ? 1 : 0
      bytes.writeUInt32LE(length, used + LENGTH_AT)
      const place = used + FRONT_BYTES
      used = place + length
      return place
    },
    bytes: () => bytes,
  }
}
