// API keys in the kv: records by workspace and id, an index by digest, and the counter that tells readers to reload.

import { hash } from 'node:crypto'
import type { ApiKey } from '../domain/workspace.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { SYSTEM, scanAll, under } from './scopes.ts'

export const KEY = 'key'
export const keyKey = (workspace: string, id: string): KvKey => [KEY, `${workspace}/${id}`]
/** Digest → the key's id in the collection; also of revoked keys, so that none comes back under another id. */
export const KEY_DIGEST = 'key-digest'
/** The seq of the last command that changed a key or a workspace. */
export const KEYS_VERSION: KvKey = ['meta', 'keys']

/** SHA-256 in hex. Enough for 256 random bits: there is nothing to guess, so nothing to slow down. */
export const keyDigest = (text: string): string => hash('sha256', text, 'hex')

export const isLive = (key: ApiKey, nowMs: number): boolean =>
  key.revokedAt === null && (key.expiresAt === null || key.expiresAt > nowMs)

/** All keys of a workspace, revoked ones included, in id order. */
export async function listKeys(kv: Pick<Kv, 'scan'>, workspace: string): Promise<ApiKey[]> {
  const found: ApiKey[] = []
  for await (const entry of scanAll<ApiKey>(kv, SYSTEM, KEY, under(workspace))) found.push(entry.value)
  return found
}

export async function listAllKeys(kv: Pick<Kv, 'scan'>): Promise<ApiKey[]> {
  const found: ApiKey[] = []
  for await (const entry of scanAll<ApiKey>(kv, SYSTEM, KEY)) found.push(entry.value)
  return found
}

/** The counter's value; 0 before the first key. */
export async function readKeysVersion(kv: Pick<Kv, 'get'>): Promise<number> {
  const [entry] = await kv.get<{ readonly seq: number }>(SYSTEM, [KEYS_VERSION])
  return entry?.value.seq ?? 0
}
