// A record of the `identifications` topic: what the ingress knows of an accepted request, then the body as it came; or a
// command about a visitor, in the order of its identifications.

import type { IdentifyMeta } from '../domain/identify.ts'
import type { Erasure } from './erasures.ts'

const ERASE_HEAD = Buffer.from('{"erase":')
const utf8 = new TextDecoder('utf-8', { fatal: true })

export function encodeIdentification(meta: IdentifyMeta, body: Uint8Array): Uint8Array {
  const head = JSON.stringify(meta)
  const headBytes = Buffer.byteLength(head)
  const bytes = Buffer.allocUnsafe(4 + headBytes + body.length)
  bytes.writeUInt32BE(headBytes, 0)
  bytes.write(head, 4)
  bytes.set(body, 4 + headBytes)
  return bytes
}

/** Throws on bytes that are no such record. */
export function decodeIdentification(bytes: Uint8Array): { readonly meta: IdentifyMeta; readonly body: Uint8Array } {
  const headBytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
  const meta = JSON.parse(utf8.decode(bytes.subarray(4, 4 + headBytes))) as IdentifyMeta
  return { meta, body: bytes.subarray(4 + headBytes) }
}

export function encodeErasure(erase: Erasure): Uint8Array {
  const head = JSON.stringify({ erase })
  const bytes = Buffer.allocUnsafe(4 + Buffer.byteLength(head))
  bytes.writeUInt32BE(bytes.length - 4, 0)
  bytes.write(head, 4)
  return bytes
}

/** The command of a record; null when it is an identification, or nothing known. */
export function decodeErasure(bytes: Uint8Array): Erasure | null {
  if (Buffer.compare(bytes.subarray(4, 4 + ERASE_HEAD.length), ERASE_HEAD) !== 0) return null
  return (JSON.parse(utf8.decode(bytes.subarray(4))) as { erase: Erasure }).erase
}
