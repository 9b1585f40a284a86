// Configuration from its log: every command of `changes` once more, by the code that applied it, so that what was refused is
// refused again. Nobody sees any of it before all of it is there.

import { DEFAULT_WORKSPACE } from '../control/bootstrap.ts'
import { runControl } from '../control/owner.ts'
import { ENVS } from '../domain/event.ts'
import type { Kv, KvKey, Scope } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import type { Log, Seq } from '../log/log.ts'
import { CHANGES_READER, CHANGES_SOURCE, SYSTEM, tenantScope } from '../records/scopes.ts'
import { listWorkspaces, readWorkspace } from '../records/workspaces.ts'
import type { Progress } from './progress.ts'

// As the first start writes them.
const BOOTSTRAP = 'bootstrap'
const BOOTSTRAP_FINISHED = 1
const DEPLOYMENT: KvKey = ['meta', 'deployment']

const WAIT_MS = 1_000

export interface RefoldConfigNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly clock: Clock
  readonly progress: Progress
}

/** Whether the records of configuration are there: position and all. */
export const hasConfiguration = async (kv: Pick<Kv, 'position'>): Promise<boolean> =>
  (await kv.position(SYSTEM, CHANGES_READER)) !== null

/**
 * Applies `changes` from its beginning, and only then writes the positions by which others know that the records can be
 * trusted. Can be repeated after any interruption. Returns the number of commands. Throws Unreadable when `changes` does not
 * even hold the first workspace.
 */
export async function refoldConfiguration({ log, kv, clock, progress }: RefoldConfigNeeds): Promise<number> {
  const last = await log.last('changes', 0)
  const covered = underCover(kv)
  for (const source of [CHANGES_SOURCE, CHANGES_READER]) {
    await covered.commit([{ scope: SYSTEM, guard: { source, expect: null, next: 0 } }])
  }
  progress.begin('configuration', null)
  const commands = await applyUpTo({ log, kv: covered, clock, progress }, last)
  if ((await readWorkspace(kv, DEFAULT_WORKSPACE)) === null) {
    throw new Unreadable('the log of changes does not hold the configuration any more: restore a backup')
  }
  for (const source of [CHANGES_SOURCE, CHANGES_READER]) {
    const next = (await covered.position(SYSTEM, source)) ?? 0
    await kv.commit([{ scope: SYSTEM, guard: { source, expect: null, next } }])
  }
  progress.end(`${commands} commands applied`)
  return commands
}

async function applyUpTo({ log, kv, clock, progress }: RefoldConfigNeeds, last: Seq): Promise<number> {
  const done = new AbortController()
  let commands = 0
  let waited = false
  const upToLast: Log = {
    ...log,
    // What could not be applied is in `dead` since it was tried first.
    append: async () => 0,
    async read(topic, partition, after, limits) {
      const records = after >= last ? [] : await log.read(topic, partition, after, { ...limits, waitMsMax: WAIT_MS })
      const ended = records.length === 0 && (after >= last || waited)
      waited = records.length === 0
      if (ended) done.abort()
      commands += records.length
      progress.advance(records.length)
      return records
    },
  }
  const bus = {
    publish: () => undefined,
    subscribe: () => () => undefined,
    close: async () => undefined,
    isLossy: false,
  }
  let stalled: unknown = null
  const report = (fact: { readonly kind: string; readonly error?: unknown }) => {
    if (fact.kind !== 'stalled') return
    stalled = fact.error
    done.abort()
  }
  await runControl({ log: upToLast, kv, bus, clock, signal: done.signal, report })
  if (stalled !== null) throw stalled
  return commands
}

/** The positions of configuration under names that nobody else reads. */
function underCover(kv: Kv): Kv {
  const cover = (scope: Scope, source: string) =>
    scope === SYSTEM && (source === CHANGES_SOURCE || source === CHANGES_READER) ? `rebuild.${source}` : source
  return {
    ...kv,
    position: (scope, source) => kv.position(scope, cover(scope, source)),
    commit: (commits) =>
      kv.commit(
        commits.map((commit) =>
          commit.guard === undefined
            ? commit
            : { ...commit, guard: { ...commit.guard, source: cover(commit.scope, commit.guard.source) } },
        ),
      ),
  }
}

/** Throws Unreadable where only a part of the configuration was lost: it cannot be told apart from what is left. */
export async function refusePartlyLost(kv: Kv): Promise<void> {
  for (const { id } of await listWorkspaces(kv)) {
    for (const env of ENVS) {
      if ((await kv.position(tenantScope(id, env), CHANGES_SOURCE)) !== null) continue
      throw new Unreadable(
        `the rules of ${id}/${env} are lost and other configuration is not: empty the kv, then run rebuild again`,
      )
    }
  }
}

/** Whether a start finds the deployment complete. */
export const isFinished = async (kv: Pick<Kv, 'position'>): Promise<boolean> =>
  (await kv.position(SYSTEM, BOOTSTRAP)) !== null

/** Last of all: from now on processes start. */
export async function finishDeployment(kv: Pick<Kv, 'commit'>, partitions: number): Promise<void> {
  const guard = { source: BOOTSTRAP, expect: null, next: BOOTSTRAP_FINISHED }
  await kv.commit([{ scope: SYSTEM, guard, put: [{ key: DEPLOYMENT, value: { partitions } }] }])
}
