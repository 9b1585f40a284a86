// The storage token: what a browser keeps of us between visits. Signed, bound to one workspace and environment, and of
// one spelling only, so that any changed character makes it void.

import { timingSafeEqual } from 'node:crypto'
import type { Env } from '../domain/event.ts'
import type { TokenClaims } from '../domain/identify.ts'
import { isVisitorId } from '../domain/ids.ts'
import { assert } from '../lib/must.ts'
import { openDigests } from './token-digest.ts'

// version 1 | reserved 1 | generation 4 | issuedAt 6 | visitor id without `pv_` 20 | digest 16 = 48 bytes: a multiple
// of three, so base64url has no spare bits that could be changed unnoticed.
const VERSION = 1
const CLAIMS_BYTES = 32
const DIGEST_BYTES = 16
const ID_AT = 12
const BYTES = CLAIMS_BYTES + DIGEST_BYTES
const PREFIX = 'st_'
/** Of a visitor id behind `pv_`. */
const ID_CHARS = 20
export const TOKEN_CHARS = PREFIX.length + (BYTES / 3) * 4
/** What the decoder alone would not see: it also takes other alphabets and skips what it does not know. */
const FORM = /^st_[A-Za-z0-9_-]{64}$/

// Of the token that is signed, verified or read now: each runs to its end before the next begins.
const bytes = Buffer.alloc(BYTES)
const claimed = bytes.subarray(0, CLAIMS_BYTES)
const signature = bytes.subarray(CLAIMS_BYTES)
const genuine = Buffer.alloc(DIGEST_BYTES)
const ID_PREFIX = 'pv_'
const spelled = Buffer.from(ID_PREFIX.padEnd(ID_PREFIX.length + ID_CHARS))
const digests = openDigests(CLAIMS_BYTES)

/** `st_` and 64 characters. `claims.visitorId` must be a visitor id, the generation below 2³². */
export function signToken(secret: string, workspace: string, env: Env, claims: TokenClaims): string {
  assert(isVisitorId(claims.visitorId), 'a token names a visitor')
  bytes[0] = VERSION
  bytes[1] = 0
  bytes.writeUInt32BE(claims.generation, 2)
  bytes.writeUIntBE(claims.issuedAt, 6, 6)
  bytes.write(claims.visitorId.slice(ID_PREFIX.length), ID_AT, ID_CHARS, 'latin1')
  digests.write(secret, workspace, env, claimed, signature)
  return PREFIX + bytes.toString('base64url')
}

/** In one piece: a text put together of two is made anew when it is first looked up. */
function visitorIdAt(place: number): string {
  for (let i = 0; i < ID_CHARS; i++) spelled[ID_PREFIX.length + i] = bytes[place + i] as number
  return Buffer.prototype.latin1Slice.call(spelled, 0, spelled.length)
}

/** The claims of a token we signed for this workspace and environment; null for any other text. */
export function verifyToken(secret: string, workspace: string, env: Env, text: string): TokenClaims | null {
  if (!FORM.test(text)) return null
  bytes.write(text.slice(PREFIX.length), 0, BYTES, 'base64url')
  digests.write(secret, workspace, env, claimed, genuine)
  if (!timingSafeEqual(genuine, signature) || bytes[0] !== VERSION) return null
  return {
    visitorId: visitorIdAt(ID_AT),
    generation: bytes.readUInt32BE(2),
    issuedAt: bytes.readUIntBE(6, 6),
  }
}

// In base64url, from the three bytes its id begins with to those it ends in.
const VISITOR_AT = { from: PREFIX.length + 16, to: PREFIX.length + 44 }

/** Whom a text names that has the form of a token, be it genuine or not; null for any other text. */
export function visitorNamedBy(text: string): string | null {
  if (!FORM.test(text)) return null
  bytes.write(text.slice(VISITOR_AT.from, VISITOR_AT.to), 0, BYTES, 'base64url')
  const visitorId = visitorIdAt(0)
  return isVisitorId(visitorId) ? visitorId : null
}
