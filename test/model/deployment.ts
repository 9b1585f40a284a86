// The deployment of a run: its stores, and the state its first start leaves behind.

import { prepareDeployment } from '../../src/control/bootstrap.ts'
import { runControl } from '../../src/control/owner.ts'
import type { Env } from '../../src/domain/event.ts'
import type { Workspace } from '../../src/domain/workspace.ts'
import { must } from '../../src/lib/must.ts'
import { type Command, type CommandDraft, encodeCommand } from '../../src/records/commands.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { readWorkspace } from '../../src/records/workspaces.ts'
import type { Host } from './host.ts'
import { bindClickHouse, type ClickHouseStore, createClickHouseStore } from './model-clickhouse.ts'
import { bindKv, createKvStore, type KvStore, peek } from './model-kv.ts'
import { type BusStore, bindBus, bindLog, createLogStore, type LogStore } from './ports.ts'
import type { Ports } from './process.ts'
import { EPOCH_MS, type Scheduler } from './scheduler.ts'

export const PARTITIONS = 2
export const WORKSPACE = 'ws_model'

export interface Deployment {
  readonly log: LogStore
  readonly kv: KvStore
  readonly clickhouse: ClickHouseStore
  readonly bus: BusStore
  /** The same stores without the scheduler: every question is answered at once. */
  readonly raw: Ports
  readonly workspace: Workspace
  /** How far the next seq is from the last. */
  readonly gap: () => number
}

/** Answers at once. Nothing ever wakes who waits. */
export const createRawHost = (scheduler: Scheduler): Host => ({
  call: async (_label, effect) => effect(),
  wait: () => new Promise(() => undefined),
  post: () => undefined,
  clock: {
    now: () => EPOCH_MS + Math.floor(scheduler.now()),
    monotonic: () => scheduler.now(),
    sleep: () => new Promise(() => undefined),
  },
})

/** Applies everything in `changes`, on ports without faults. */
export async function foldChanges(ports: Ports, host: Host): Promise<void> {
  const last = await ports.log.last('changes', 0)
  const done = new AbortController()
  await runControl({
    ...ports,
    clock: host.clock,
    signal: done.signal,
    report: (fact) => {
      if ('seq' in fact && fact.seq === last) done.abort()
    },
  })
}

export const prepare = (ports: Pick<Ports, 'log' | 'kv'>) =>
  prepareDeployment({ ...ports, partitions: PARTITIONS, sources: [ENGINE_POSITION, SINK_POSITION] })

export const MAXIMA = { rulesMax: 20, activeMax: 10 } as const
type RuleData = Extract<CommandDraft, { readonly type: 'rule.create' }>['data']

export function ruleDraft(id: string, env: Env, data: Partial<RuleData>): CommandDraft {
  return {
    type: 'rule.create',
    workspace: WORKSPACE,
    env,
    actor: 'model',
    data: {
      id,
      name: id,
      conditions: { operator: 'AND', rules: [{ field: 'visitorFound', operator: 'equals', value: true }] },
      action: { verdict: 'challenge' },
      status: 'live',
      priority: null,
      maxima: MAXIMA,
      ...data,
    },
  }
}

const FIRST: readonly CommandDraft[] = [
  {
    type: 'workspace.create',
    workspace: WORKSPACE,
    env: null,
    actor: 'model',
    data: {
      name: 'Model',
      plan: 'enterprise',
      apiVersion: '2026-11-01',
      settings: { clientResult: 'verdict' },
      tokenSecret: 'the secret of the model workspace',
    },
  },
  ruleDraft('rul_live', 'live', {}),
  ruleDraft('rul_test', 'test', { status: 'monitor' }),
]
/** Returning visitors are put on a list. */
const WITH_LISTS: readonly CommandDraft[] = [
  {
    type: 'list.create',
    workspace: WORKSPACE,
    env: 'live',
    actor: 'model',
    data: {
      id: 'lst_seen',
      name: 'seen',
      type: 'visitor',
      description: null,
      ttl: null,
      maxima: { listsMax: 10 },
    },
  },
  {
    type: 'rule.update',
    workspace: WORKSPACE,
    env: 'live',
    actor: 'model',
    data: {
      id: 'rul_live',
      changes: { sideEffects: [{ type: 'addToList', list: 'seen', value: 'visitorId' }, { type: 'log' }] },
      maxima: MAXIMA,
    },
  },
]
const encodeFirst = (drafts: readonly CommandDraft[]) =>
  drafts.map((draft, i) => encodeCommand({ ...draft, id: `cmd_${String(i).padStart(26, '0')}`, at: i } as Command))

/** Positions written explicitly, a workspace, and a rule in each of its environments. */
export async function createDeployment(
  scheduler: Scheduler,
  { lists = false, gapless = false }: { readonly lists?: boolean; readonly gapless?: boolean },
): Promise<Deployment> {
  const { random } = scheduler
  const host = createRawHost(scheduler)
  const log = createLogStore({ partitions: PARTITIONS })
  const kv = createKvStore()
  const clickhouse = createClickHouseStore()
  const gap = () => (!gapless && random.chance(0.1) ? 3 : 1)
  const raw = {
    log: bindLog(log, host, 'raw', gap),
    kv: bindKv(kv, host),
    bus: bindBus(new Map(), host, () => undefined),
    clickhouse: bindClickHouse(clickhouse, host),
  }
  await prepare(raw)
  await raw.log.append('changes', 0, encodeFirst(lists ? [...FIRST, ...WITH_LISTS] : FIRST))
  await foldChanges(raw, host)
  const workspace = must(await readWorkspace(raw.kv, WORKSPACE), 'the workspace')
  return { log, kv, clickhouse, bus: new Map(), raw, workspace, gap }
}

/** The last identification decided as of the checkpoint. */
export const decidedTo = (kv: KvStore, partition: number): number =>
  (peek(kv, partitionScope(partition), DECIDED_TO) as number | undefined) ?? 0

export const positionOf = (kv: KvStore, scope: string, source: string): number | null =>
  kv.scopes.get(scope)?.positions.get(source) ?? null
