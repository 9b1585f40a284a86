// Secrets of a deployment and the master key they are sealed under: those of webhooks, and those that sign storage tokens. Which key
// that is, is kept, and so is which keys were given up as lost.

import { ENVS, type Env } from '../domain/event.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import { makeMasterKey, openSealer, readMasterKey, type Sealer, sealedBy } from '../lib/sealed.ts'
import { SYSTEM } from './scopes.ts'
import { readWebhooks } from './webhooks.ts'
import { listWorkspaces } from './workspaces.ts'

const MASTER_KEY: KvKey = ['meta', 'master-key']
const LOST_KEYS: KvKey = ['meta', 'lost-master-keys']

const tokenContext = (workspace: string): string => `token/${workspace}`

export const sealToken = (sealer: Pick<Sealer, 'seal'>, workspace: string, tokenSecret: string): string =>
  sealer.seal(tokenSecret, tokenContext(workspace))

/** The workspace with the secret as it signs. One of an older build, or of a simulated deployment, is not sealed. */
export function withOpenToken<W extends Pick<Workspace, 'id' | 'tokenSecret'>>(
  sealer: Pick<Sealer, 'open'> | null,
  workspace: W,
): W {
  if (sealer === null || sealedBy(workspace.tokenSecret) === null) return workspace
  return { ...workspace, tokenSecret: sealer.open(workspace.tokenSecret, tokenContext(workspace.id)) }
}

/** Secrets that the master key of this process does not open, and those that are not sealed yet. */
export interface UnreadableSecrets {
  readonly tokens: readonly Workspace[]
  readonly webhooks: readonly { readonly workspace: string; readonly env: Env; readonly id: string }[]
  readonly unsealed: readonly Workspace[]
}

export interface Secrets {
  readonly sealer: Sealer
  readonly unreadable: UnreadableSecrets
}

/** Secrets cannot be opened, and nobody has given them up. */
export class SecretsLost extends Error {
  override readonly name = 'SecretsLost'
  readonly count: number

  constructor(problem: string, count: number) {
    super(
      `${problem}; bring the key back, or start with --accept-lost-secrets: webhooks are disabled until their secret is rotated, and storage tokens of before count as none`,
    )
    this.count = count
  }
}

export interface SecretsNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit'>
  readonly keyFile: string
  readonly random: RandomBytes
  /** Whether this process makes the key of a new deployment; others wait for it. */
  readonly makes: boolean
  readonly acceptLost: boolean
}

/** SecretsLost is an answer: the process can still say so. Throws Unavailable while another one has still to make the key. */
export async function openSecrets(needs: SecretsNeeds): Promise<Secrets | SecretsLost> {
  const { kv, keyFile: path, random, makes, acceptLost } = needs
  const [known, lost] = await kv.get(SYSTEM, [MASTER_KEY, LOST_KEYS])
  const knownId = (known?.value as string | undefined) ?? null
  const givenUp = (lost?.value as readonly string[] | undefined) ?? []
  const found = readMasterKey(path)
  const inUse = await keysInUse(kv, knownId, givenUp)
  if (found === null) {
    const count = [...inUse.values()].reduce((sum, n) => sum + n, 0)
    if (inUse.size > 0 && !acceptLost) return new SecretsLost(`the master key ${path} is missing`, count)
    if (!makes) throw new Unavailable(`the master key ${path} is not there yet`)
  }
  const sealer = openSealer(found ?? makeMasterKey(path, random), random)
  const others = [...inUse.keys()].filter((id) => id !== sealer.keyId)
  if (others.length > 0 && !acceptLost) {
    const count = others.reduce((sum, id) => sum + (inUse.get(id) ?? 0), 0)
    return new SecretsLost(`${path} holds another master key than the one secrets are sealed under`, count)
  }
  if (knownId !== sealer.keyId) {
    const values = [
      { key: MASTER_KEY, value: sealer.keyId },
      { key: LOST_KEYS, value: [...new Set([...givenUp, ...others])].filter((id) => id !== sealer.keyId) },
    ]
    const check = [
      [MASTER_KEY, known?.version ?? null],
      [LOST_KEYS, lost?.version ?? null],
    ] as const
    const [done] = await kv.commit([{ scope: SYSTEM, check, put: values }])
    // Another process was faster: what it did decides.
    if (done !== true) throw new Unavailable('the master key was told by two processes at once')
  }
  return { sealer, unreadable: await survey(kv, sealer) }
}

/** How many secrets the key in the file does not open. */
export async function countUnreadable(
  kv: Pick<Kv, 'get' | 'scan'>,
  keyFile: string,
  random: RandomBytes,
): Promise<number> {
  const key = readMasterKey(keyFile)
  const keyId = key === null ? null : openSealer(key, random).keyId
  const [lost] = await kv.get<readonly string[]>(SYSTEM, [LOST_KEYS])
  const inUse = await keysInUse(kv, null, lost?.value ?? [])
  return [...inUse].reduce((sum, [id, count]) => sum + (id === keyId ? 0 : count), 0)
}

/** How many secrets are sealed under each key, without keys that were given up. */
async function keysInUse(
  kv: Pick<Kv, 'get' | 'scan'>,
  knownId: string | null,
  givenUp: readonly string[],
): Promise<Map<string, number>> {
  const counts = new Map<string, number>(knownId === null ? [] : [[knownId, 0]])
  const add = (sealed: string) => {
    const id = sealedBy(sealed)
    if (id !== null && !givenUp.includes(id)) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  for (const workspace of await listWorkspaces(kv)) {
    add(workspace.tokenSecret)
    for (const env of ENVS) {
      for (const { secrets } of await readWebhooks(kv, workspace.id, env)) for (const one of secrets) add(one.sealed)
    }
  }
  return counts
}

async function survey(kv: Pick<Kv, 'get' | 'scan'>, { keyId }: Sealer): Promise<UnreadableSecrets> {
  const workspaces = await listWorkspaces(kv)
  const keyOf = ({ tokenSecret }: Workspace) => sealedBy(tokenSecret)
  const webhooks: UnreadableSecrets['webhooks'][number][] = []
  for (const { id: workspace } of workspaces) {
    for (const env of ENVS) {
      for (const { id, secrets } of await readWebhooks(kv, workspace, env)) {
        if (secrets[0] !== undefined && sealedBy(secrets[0].sealed) !== keyId) webhooks.push({ workspace, env, id })
      }
    }
  }
  return {
    tokens: workspaces.filter((one) => keyOf(one) !== null && keyOf(one) !== keyId),
    unsealed: workspaces.filter((one) => keyOf(one) === null),
    webhooks,
  }
}
