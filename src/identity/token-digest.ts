// What signs a storage token: HMAC-SHA-256 over workspace, environment and claims (RFC 2104), cut to its first bytes. It is made of
// two one-shot hashes over buffers that are prepared once per workspace and environment: an object of `createHmac` per token
// would cost three times as much.

import { hash } from 'node:crypto'
import type { Env } from '../domain/event.ts'

const BLOCK_BYTES = 64
const SHA256_BYTES = 32
const INNER_PAD = 0x36
const OUTER_PAD = 0x5c
/** Prepared secrets of one environment; beyond them all are prepared anew as they come. */
const PREPARED_MAX = 4_096

/** What is hashed first, and then; the end of each is written anew for each token. */
interface Prepared {
  readonly workspace: string
  readonly inner: Buffer
  readonly outer: Buffer
}

/** Digests of claims that are `claimsBytes` long. */
export function openDigests(claimsBytes: number) {
  const known: Readonly<Record<Env, Map<string, Prepared>>> = { live: new Map(), test: new Map() }

  function prepare(secret: string, workspace: string, env: Env): Prepared {
    const text = Buffer.from(secret)
    const key = Buffer.alloc(BLOCK_BYTES)
    key.set(text.length > BLOCK_BYTES ? hash('sha256', text, 'buffer') : text)
    const scope = Buffer.from(`${workspace}\0${env}\0`)
    const padded = (pad: number) => Buffer.from(key.map((byte) => byte ^ pad))
    const prepared = {
      workspace,
      inner: Buffer.concat([padded(INNER_PAD), scope, Buffer.alloc(claimsBytes)]),
      outer: Buffer.concat([padded(OUTER_PAD), Buffer.alloc(SHA256_BYTES)]),
    }
    if (known[env].size >= PREPARED_MAX) known[env].clear()
    known[env].set(secret, prepared)
    return prepared
  }

  return {
    /** Fills `to` with the beginning of the digest. */
    write(secret: string, workspace: string, env: Env, claims: Uint8Array, to: Buffer): void {
      let prepared = known[env].get(secret)
      if (prepared?.workspace !== workspace) prepared = prepare(secret, workspace, env)
      const { inner, outer } = prepared as Prepared
      inner.set(claims, inner.length - claimsBytes)
      // A text of one character per byte is made much faster than a buffer.
      outer.write(hash('sha256', inner, 'binary'), BLOCK_BYTES, 'latin1')
      to.write(hash('sha256', outer, 'binary'), 'latin1')
    },
  }
}
