// The storage token: what a browser keeps of us between visits. Signed, bound to one workspace and environment, and of
// one spelling only, so that any changed character makes it void.

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Env } from '../domain/event.ts'
import type { TokenClaims } from '../domain/identify.ts'
import { isVisitorId } from '../domain/ids.ts'
import { assert } from '../lib/must.ts'

// version 1 | reserved 1 | generation 4 | issuedAt 6 | visitor id without `pv_` 20 | digest 16 = 48 bytes: a multiple
// of three, so base64url has no spare bits that could be changed unnoticed.
const VERSION = 1
const CLAIMS_BYTES = 32
const DIGEST_BYTES = 16
const BYTES = CLAIMS_BYTES + DIGEST_BYTES
const PREFIX = 'st_'
const CHARS = PREFIX.length + (BYTES / 3) * 4

function digestOf(secret: string, workspace: string, env: Env, claims: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${workspace}\0${env}\0`).update(claims).digest().subarray(0, DIGEST_BYTES)
}

/** `st_` and 64 characters. `claims.visitorId` must be a visitor id, the generation below 2³². */
export function signToken(secret: string, workspace: string, env: Env, claims: TokenClaims): string {
  assert(isVisitorId(claims.visitorId), 'a token names a visitor')
  const bytes = Buffer.allocUnsafe(BYTES)
  bytes[0] = VERSION
  bytes[1] = 0
  bytes.writeUInt32BE(claims.generation, 2)
  bytes.writeUIntBE(claims.issuedAt, 6, 6)
  bytes.write(claims.visitorId.slice(3), 12, 20, 'latin1')
  digestOf(secret, workspace, env, bytes.subarray(0, CLAIMS_BYTES)).copy(bytes, CLAIMS_BYTES)
  return PREFIX + bytes.toString('base64url')
}

/** The claims of a token we signed for this workspace and environment; null for any other text. */
export function verifyToken(secret: string, workspace: string, env: Env, text: string): TokenClaims | null {
  if (text.length !== CHARS || !text.startsWith(PREFIX)) return null
  const bytes = Buffer.from(text.slice(PREFIX.length), 'base64url')
  // The decoder also takes other alphabets and skips what it does not know.
  if (bytes.length !== BYTES || bytes.toString('base64url') !== text.slice(PREFIX.length)) return null
  const digest = digestOf(secret, workspace, env, bytes.subarray(0, CLAIMS_BYTES))
  if (!timingSafeEqual(digest, bytes.subarray(CLAIMS_BYTES)) || bytes[0] !== VERSION) return null
  return {
    visitorId: `pv_${bytes.toString('latin1', 12, 32)}`,
    generation: bytes.readUInt32BE(2),
    issuedAt: bytes.readUIntBE(6, 6),
  }
}
