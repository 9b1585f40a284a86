// Which master key a deployment's secrets are sealed under: its id is kept, so that a process with another key does not start.

import type { RandomBytes } from '../domain/ids.ts'
import type { Key, Kv } from '../kv/kv.ts'
import { Unreadable } from '../lib/failures.ts'
import { makeMasterKey, openSealer, readMasterKey, type Sealer } from '../lib/sealed.ts'
import { SYSTEM } from './scopes.ts'

const MASTER_KEY: Key = ['meta', 'master-key']

/** Makes the file where a deployment has no key yet. Throws Unreadable when its key is missing or is another one. */
export async function openDeploymentSealer(
  kv: Pick<Kv, 'get' | 'commit'>,
  path: string,
  random: RandomBytes,
): Promise<Sealer> {
  const [known] = await kv.get<string>(SYSTEM, [MASTER_KEY])
  const key = readMasterKey(path) ?? (known ? null : makeMasterKey(path, random))
  if (key === null) {
    throw new Unreadable(`the master key ${path} is missing: secrets of webhooks are sealed under it; bring it back`)
  }
  const sealer = openSealer(key, random)
  await kv.commit([{ scope: SYSTEM, check: [[MASTER_KEY, null]], put: [{ key: MASTER_KEY, value: sealer.keyId }] }])
  const [now] = await kv.get<string>(SYSTEM, [MASTER_KEY])
  if (now?.value !== sealer.keyId) {
    throw new Unreadable(`${path} holds another master key than the one this deployment's secrets are sealed under`)
  }
  return sealer
}
