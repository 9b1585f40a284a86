// The first start of a deployment: tells an empty one from a damaged one, writes the first positions, and creates the
// default workspace with its keys. Every step may be repeated, so a start killed half-way is finished by the next one.

import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { base62, makeObjectId, type RandomBytes } from '../domain/ids.ts'
import { keyForm, last4, makeKey } from '../domain/keys.ts'
import { API_VERSIONS, type KeyKind, type Workspace } from '../domain/workspace.ts'
import type { Kv, KvKey, Scope } from '../kv/kv.ts'
import { Told } from '../lib/failures.ts'
import type { Logger } from '../lib/logger.ts'
import { must } from '../lib/must.ts'
import type { Sealer } from '../lib/sealed.ts'
import { type Log, TOPICS } from '../log/log.ts'
import type { CommandDraft, KeyToMake } from '../records/commands.ts'
import { KEY_DIGEST, keyDigest } from '../records/keys.ts'
import { partitionScope } from '../records/partitions.ts'
import { HALF_RESTORED, isHalfRestored } from '../records/restoring.ts'
import { CHANGES_READER, CHANGES_SOURCE, SYSTEM } from '../records/scopes.ts'
import { sealToken } from '../records/secrets.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { NeedsRebuild } from './owner.ts'
import { accepted, type Submitter } from './submit.ts'

export const DEFAULT_WORKSPACE = 'ws_default'
export const KEYS_PER_WORKSPACE_MAX = 100
const TOKEN_SECRET_CHARS = 43
const ACTOR = 'bootstrap'

/** How far the first start has come, as a position in `system`: missing, BEGUN, FINISHED. */
const PROGRESS = 'bootstrap'
const BEGUN = 0
const FINISHED = 1
const DEPLOYMENT: KvKey = ['meta', 'deployment']

export interface DeploymentStores {
  /** Fixed for the life of the deployment. */
  readonly partitions: number
}

/** The deployment's partitions are not those asked for. */
class WrongPartitions extends Told {
  override readonly name = 'WrongPartitions'
}

/** What is there of the deployment is a part of a backup. */
class HalfRestored extends Told {
  override readonly name = 'HalfRestored'
}

/** The log is new, or another deployment's, while the records of this one are there. */
class LostLog extends Told {
  override readonly name = 'LostLog'

  constructor() {
    super(
      'the records say what was read of the log, and the log holds nothing: give it the streams or files it had, or empty the records and run rebuild',
    )
  }
}

export interface DeploymentNeeds {
  readonly log: Pick<Log, 'last'>
  readonly kv: Kv
  readonly partitions: number
  /** Readers that keep a position in every partition's scope. */
  readonly sources: readonly string[]
}

/**
 * Makes an empty deployment ready, and does nothing to one that is. Call it before any role starts.
 * Throws HalfRestored when a restore was begun and not finished, NeedsRebuild when the log holds records but the positions are gone,
 * LostLog when it is the other way round, and WrongPartitions when the number differs.
 */
export async function prepareDeployment({ log, kv, partitions, sources }: DeploymentNeeds): Promise<DeploymentStores> {
  // First: the log may be empty as yet, and a rebuild could do nothing about it.
  if (await isHalfRestored(kv)) throw new HalfRestored(HALF_RESTORED)
  if ((await kv.position(SYSTEM, PROGRESS)) === null) {
    // Another process may have made it ready, and even used it, since the position was asked for.
    if (!(await isEmpty(log, partitions)) && (await kv.position(SYSTEM, PROGRESS)) === null) {
      throw new NeedsRebuild('the log holds records but the records have no positions: run rebuild')
    }
    await initialisePositions(kv, partitions, sources)
    await writeFirst(kv, SYSTEM, CHANGES_SOURCE)
    await writeFirst(kv, SYSTEM, CHANGES_READER)
    // Last, since everything is allowed to be missing as long as this is.
    const put = [{ key: DEPLOYMENT, value: { partitions } satisfies DeploymentStores }]
    await kv.commit([{ scope: SYSTEM, guard: { source: PROGRESS, expect: null, next: BEGUN }, put }])
  }
  const [entry] = await kv.get<DeploymentStores>(SYSTEM, [DEPLOYMENT])
  const deployment = must(entry, 'the record of the deployment').value
  if (deployment.partitions !== partitions) {
    throw new WrongPartitions(`created with ${deployment.partitions} partitions, started with ${partitions}`)
  }
  // What is accepted into it would lie below the positions of readers: nobody would decide it, and the trimming would take it away.
  if (((await kv.position(SYSTEM, CHANGES_READER)) ?? 0) > 0 && (await isEmpty(log, partitions))) throw new LostLog()
  return deployment
}

/** Writes position 0 of each source in each partition, explicitly; positions that exist stay as they are. */
async function initialisePositions(kv: Kv, partitions: number, sources: readonly string[]): Promise<void> {
  const scopes = Array.from({ length: partitions }, (_, partition) => partitionScope(partition))
  await Promise.all(
    scopes.map(async (scope) => {
      for (const source of sources) await writeFirst(kv, scope, source)
    }),
  )
}

async function writeFirst(kv: Kv, scope: Scope, source: string): Promise<void> {
  await kv.commit([{ scope, guard: { source, expect: null, next: 0 } }])
}

async function isEmpty(log: Pick<Log, 'last'>, partitions: number): Promise<boolean> {
  for (const topic of TOPICS) {
    const count = topic === 'changes' || topic === 'dead' ? 1 : partitions
    for (let partition = 0; partition < count; partition++) {
      if ((await log.last(topic, partition)) !== 0) return false
    }
  }
  return true
}

export interface Seed {
  readonly kind: KeyKind
  readonly env: Env
  /** The key's text, well-formed; undefined: generate one on the first start. */
  readonly text?: string
}

export interface BootstrapNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  readonly random: RandomBytes
  /** One per kind and environment. */
  /** Null: the token secret stays as it is. */
  readonly sealer: Pick<Sealer, 'seal'> | null
  readonly seeds: readonly Seed[]
}

export interface Bootstrapped {
  readonly workspace: Workspace
  /** Keys whose text exists nowhere else: show them once, then call `finish`. */
  readonly generated: readonly { readonly kind: KeyKind; readonly env: Env; readonly text: string }[]
  /** Until this resolves, the next start replaces the generated keys, since nobody may have seen them. */
  finish(): Promise<void>
}

/**
 * Creates the default workspace and its keys on a new deployment; on any other one adds pre-seeded keys that were never
 * known. Needs a running control owner. Throws ApiError unavailable when that does not answer.
 */
export async function bootstrap({ kv, submit, random, seeds, sealer }: BootstrapNeeds): Promise<Bootstrapped> {
  const progress = must(await kv.position(SYSTEM, PROGRESS), 'a prepared deployment')
  if ((await readWorkspace(kv, DEFAULT_WORKSPACE)) === null) await createDefaultWorkspace(submit, random, sealer)
  // At once: each waits for two flushes to disk, which they share.
  const made = await Promise.all(
    seeds.map(async ({ kind, env, text }) => {
      if (text !== undefined) await addSeeded(kv, submit, random, text)
      else if (progress === BEGUN) {
        const text = makeKey(kind, env, random)
        // Rotation, not creation: a start that was killed may have left a key that was never shown.
        accepted(await submit(keyCommand('key.rotate', text, random)))
        return [{ kind, env, text }]
      }
      return []
    }),
  )
  return {
    workspace: must(await readWorkspace(kv, DEFAULT_WORKSPACE), 'the default workspace'),
    generated: made.flat(),
    async finish() {
      if (progress !== BEGUN) return
      await kv.commit([{ scope: SYSTEM, guard: { source: PROGRESS, expect: BEGUN, next: FINISHED } }])
    },
  }
}

/** Among other processes: the lease on `changes` may be that of one that has just died. Waits until `signal` aborts. */
export const patientBootstrap =
  (logger: Pick<Logger, 'warn'>, signal: AbortSignal) =>
  async (needs: BootstrapNeeds): Promise<Bootstrapped> => {
    for (let tries = 1; ; tries++) {
      try {
        return await bootstrap(needs)
      } catch (error) {
        if (!(error instanceof ApiError && error.code === 'unavailable') || signal.aborted) throw error
        logger.warn({ tries }, 'waiting for the control plane')
      }
    }
  }

/** Throws ApiError unavailable when no owner of `changes` answers. */
export async function createDefaultWorkspace(
  submit: Submitter['submit'],
  random: RandomBytes,
  sealer: Pick<Sealer, 'seal'> | null,
): Promise<void> {
  const tokenSecret = makeTokenSecret(random)
  const outcome = await submit({
    type: 'workspace.create',
    workspace: DEFAULT_WORKSPACE,
    env: null,
    actor: ACTOR,
    data: {
      name: 'default',
      plan: 'enterprise',
      apiVersion: must(API_VERSIONS[0], 'an API version'),
      settings: { clientResult: 'id' },
      tokenSecret: sealer === null ? tokenSecret : sealToken(sealer, DEFAULT_WORKSPACE, tokenSecret),
    },
  })
  // Two processes may start at once: the other one's workspace is as good.
  if (!outcome.ok && outcome.code !== 'conflict') accepted(outcome)
}

async function addSeeded(kv: Kv, submit: Submitter['submit'], random: RandomBytes, text: string): Promise<void> {
  const [known] = await kv.get(SYSTEM, [[KEY_DIGEST, keyDigest(text)]])
  if (known) return
  const outcome = await submit(keyCommand('key.create', text, random))
  if (!outcome.ok && outcome.code !== 'conflict') accepted(outcome)
}

function keyCommand(type: 'key.create' | 'key.rotate', text: string, random: RandomBytes): CommandDraft {
  const { kind, env } = must(keyForm(text), 'a well-formed key')
  const key = newKey(text, random, { kind, label: ACTOR })
  return { type, workspace: DEFAULT_WORKSPACE, env, actor: ACTOR, data: { key, keysMax: KEYS_PER_WORKSPACE_MAX } }
}

export const makeTokenSecret = (random: RandomBytes): string => base62(TOKEN_SECRET_CHARS, random)

/** What is stored of a key: everything but its text. */
export const newKey = (
  text: string,
  random: RandomBytes,
  about: Pick<KeyToMake, 'kind'> & Partial<Pick<KeyToMake, 'label' | 'scopes' | 'origins' | 'expiresAt'>>,
): KeyToMake => ({
  id: makeObjectId('key', random),
  digest: keyDigest(text),
  last4: last4(text),
  label: null,
  scopes: null,
  origins: null,
  expiresAt: null,
  ...about,
})
