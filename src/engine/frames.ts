// A batch of log records in one buffer, so that it crosses to a worker by transfer and not by copy.

import type { LogRecord } from '../log/log.ts'

export interface Frame {
  readonly seq: number
  readonly bytes: Uint8Array
}

/** [seq float64][length uint32][bytes] for each record. The buffer is new and owned by nobody else. */
export function packFrames(records: readonly LogRecord[]): ArrayBuffer {
  let total = 0
  for (const record of records) total += 12 + record.bytes.length
  const buffer = new ArrayBuffer(total)
  const view = new DataView(buffer)
  const bytes = new Uint8Array(buffer)
  let at = 0
  for (const record of records) {
    view.setFloat64(at, record.seq)
    view.setUint32(at + 8, record.bytes.length)
    bytes.set(record.bytes, at + 12)
    at += 12 + record.bytes.length
  }
  return buffer
}

export function unpackFrames(buffer: ArrayBuffer): Frame[] {
  const view = new DataView(buffer)
  const frames: Frame[] = []
  for (let at = 0; at < buffer.byteLength; ) {
    const length = view.getUint32(at + 8)
    frames.push({ seq: view.getFloat64(at), bytes: new Uint8Array(buffer, at + 12, length) })
    at += 12 + length
  }
  return frames
}
