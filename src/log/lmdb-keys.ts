// The keys of the log on LMDB: a kind with its topic, the partition, and a seq, all big endian so that keys sort by them.

import type { Seq } from './log.ts'

export const KEY_BYTES = 9
export const SEQ_BYTES = 6
/** Keys hold six bytes of seq. */
export const SEQ_MAX = 2 ** 48 - 1
/** An entry, under the seq of its last record. */
export const RECORD_KIND = 0x10
/** Up to which seq records are gone. */
export const FLOOR_KIND = 0x01
const SEQ_AT = 3

export function writeKey(key: Buffer, kind: number, topic: number, partition: number, seq: Seq): Buffer {
  key[0] = kind + topic
  key.writeUInt16BE(partition, 1)
  key.writeUIntBE(seq, SEQ_AT, SEQ_BYTES)
  return key
}

export const seqOfKey = (key: unknown): Seq => (key as Buffer).readUIntBE(SEQ_AT, SEQ_BYTES)
