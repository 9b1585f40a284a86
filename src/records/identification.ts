// A record of the `identifications` topic: what the ingress knows of an accepted request, then the body as it came.

import type { IdentifyMeta } from '../domain/identify.ts'

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
