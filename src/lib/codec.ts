// Values into bytes and back for stored records and log entries: msgpack, plain maps, no shared structures.

import { Packr } from 'msgpackr'

const packr = new Packr({ useRecords: false, int64AsType: 'number' })

export const pack = (value: unknown): Uint8Array => packr.pack(value)

/** The value, or null when the bytes are not one whole msgpack value. */
export function unpack(bytes: Uint8Array): unknown {
  try {
    return packr.unpack(bytes)
  } catch {
    return null
  }
}
