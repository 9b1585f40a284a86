// A control plane on real backends in a temp folder: log, kv, bus, and an owner that applies commands.

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Bus } from '../../src/bus/bus.ts'
import { openBus } from '../../src/bus/open.ts'
import { prepareDeployment } from '../../src/control/bootstrap.ts'
import { type ControlReport, runControl } from '../../src/control/owner.ts'
import { openSubmit } from '../../src/control/submit.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { openKv } from '../../src/kv/open.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import type { Log } from '../../src/log/log.ts'
import { openLog } from '../../src/log/open.ts'
import { AUDIT_COLLECTIONS } from '../../src/records/audit.ts'
import type { CommandDraft } from '../../src/records/commands.ts'
import { registerEvaluator } from '../../src/records/evaluators.ts'
import { onHint, publishHint } from '../../src/records/hints.ts'
import { scanAll } from '../../src/records/scopes.ts'

export const random = (n: number): Uint8Array => randomBytes(n)
export const PARTITIONS = 2
export const SOURCES = ['events', 'sink']

export interface Ports {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly folder: string
}

/** Fresh ports, closed and removed when the test ends. */
export async function openPorts(t: Test): Promise<Ports> {
  const folder = await mkdtemp(join(tmpdir(), 'fingerpost-control-'))
  const config = { backend: 'lmdb', dataDir: folder, clock: systemClock, durability: 'relaxed' } as const
  const log = await openLog({ ...config, partitions: PARTITIONS, bytesMax: 1_000_000_000 })
  const kv = await openKv(config)
  const bus = await openBus({
    backend: 'local',
    onError: (error: unknown) => t.fail('a bus receiver failed', { error }),
  })
  t.teardown(async () => {
    await bus.close()
    await log.close()
    await kv.close()
    await rm(folder, { recursive: true, force: true })
  })
  return { log, kv, bus, folder }
}

export const prepare = ({ log, kv }: Pick<Ports, 'log' | 'kv'>) =>
  prepareDeployment({ log, kv, partitions: PARTITIONS, sources: SOURCES })

/** Runs an owner until stopped; `stop` resolves when it is over and rethrows what it failed with. */
export function startOwner(t: Test, ports: Pick<Ports, 'log' | 'kv' | 'bus'>) {
  const reports: ControlReport[] = []
  const stopped = new AbortController()
  const over = runControl({
    log: ports.log,
    kv: ports.kv,
    bus: ports.bus,
    clock: systemClock,
    signal: stopped.signal,
    report: (fact) => reports.push(fact),
  })
  over.catch(() => {})
  async function stop(): Promise<void> {
    stopped.abort()
    await over
  }
  t.teardown(() => stop().catch(() => {}))
  return { reports, stop, over }
}

export function startSubmit(t: Test, { log, kv, bus }: Pick<Ports, 'log' | 'kv' | 'bus'>, clock: Clock = systemClock) {
  const submitter = openSubmit({ log, kv, bus, clock, random })
  t.teardown(() => submitter.close())
  return submitter.submit
}

/** Confirms every revision it hears of, like an evaluator would. */
export async function startEvaluator(t: Test, { kv, bus }: Pick<Ports, 'kv' | 'bus'>, id = 'evaluator-1') {
  const confirmed = new Map<string, number>()
  await registerEvaluator(kv, id, confirmed)
  let beat: Promise<void> = Promise.resolve()
  const unsubscribe = onHint(bus, 'ruleset.revision', ({ workspace, env, revision }) => {
    const name = `${workspace}/${env}`
    confirmed.delete(name)
    confirmed.set(name, revision)
    beat = beat.then(() => registerEvaluator(kv, id, confirmed)).catch(() => {})
    publishHint(bus, 'ruleset.confirmed', { evaluator: id, workspace, env, revision })
  })
  const heartbeat = setInterval(() => {
    beat = beat.then(() => registerEvaluator(kv, id, confirmed)).catch(() => {})
  }, 2_000)
  async function stop(): Promise<void> {
    unsubscribe()
    clearInterval(heartbeat)
    await beat
  }
  t.teardown(stop)
  return { stop }
}

/** Everything the control plane wrote, as text that can be compared; what is not a fold of `changes` is left out. */
export async function dump(kv: Kv, workspaces: readonly string[]): Promise<string> {
  const lines: string[] = []
  const scopes = ['system', ...workspaces.flatMap((id) => [`w/${id}/live`, `w/${id}/test`])]
  const collections = ['workspace', 'key', 'key-digest', 'meta', 'rule', 'rule-order', 'outcome', ...AUDIT_COLLECTIONS]
  for (const scope of scopes) {
    lines.push(`${scope} changes=${await kv.position(scope, 'changes')}`)
    for (const collection of collections) {
      for await (const { key, value } of scanAll(kv, scope, collection)) {
        lines.push(`${scope} ${key.join('/')} ${JSON.stringify(value)}`)
      }
    }
  }
  return lines.join('\n')
}

const CONDITIONS = { operator: 'AND', rules: [{ field: 'visitorFound', operator: 'equals', value: true }] } as const

export const createWorkspace = (workspace: string): CommandDraft => ({
  type: 'workspace.create',
  workspace,
  env: null,
  actor: 'test',
  data: {
    name: workspace,
    plan: 'enterprise',
    apiVersion: '2026-11-01',
    settings: { clientResult: 'id' },
    tokenSecret: 'secret',
  },
})

export const createRule = (
  workspace: string,
  id: string,
  more: Partial<Extract<CommandDraft, { type: 'rule.create' }>['data']> = {},
): CommandDraft => ({
  type: 'rule.create',
  workspace,
  env: 'live',
  actor: 'test',
  data: {
    id,
    name: id,
    conditions: CONDITIONS,
    action: { verdict: 'block' },
    status: 'live',
    priority: null,
    maxima: { rulesMax: 100, activeMax: 50 },
    ...more,
  },
})
