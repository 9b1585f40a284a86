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
const PARTITION_AT = 1
const SEQ_AT = 3

export function writeKey(key: Buffer, kind: number, topic: number, partition: number, seq: Seq): Buffer {
  key[0] = kind + topic
  key.writeUInt16BE(partition, PARTITION_AT)
  key.writeUIntBE(seq, SEQ_AT, SEQ_BYTES)
  return key
}

export const seqOfKey = (key: unknown): Seq => (key as Buffer).readUIntBE(SEQ_AT, SEQ_BYTES)

/** The topic and the partition of an entry, by their numbers; null: it is no entry. */
export function placeOfKey(key: Buffer): { readonly topic: number; readonly partition: number } | null {
  const kind = key[0] ?? 0
  return kind < RECORD_KIND ? null : { topic: kind - RECORD_KIND, partition: key.readUInt16BE(PARTITION_AT) }
}
