// The control plane's part of the checks: configuration is what folding `changes` anew gives.

import { unpack } from '../../src/lib/codec.ts'
import { SYSTEM, scanAll, tenantScope } from '../../src/records/scopes.ts'
import type { Facts } from './checks.ts'
import { createRawHost, foldChanges, PARTITIONS, prepare } from './deployment.ts'
import { bindKv, createKvStore } from './model-kv.ts'
import { bindBus, bindLog, createLogStore } from './ports.ts'
import type { Scheduler } from './scheduler.ts'

async function dump(kv: Facts['raw']['kv']): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const scope of [SYSTEM, tenantScope('ws_model', 'live'), tenantScope('ws_model', 'test')]) {
    found.set(`${scope} position`, String(await kv.position(scope, 'changes')))
    for (const collection of [
      'workspace',
      'meta',
      'rule',
      'rule-order',
      'list',
      'list-entry',
      'list-delta',
      'list-effects',
      'list-effects-audit',
      'alias',
      'merged',
      'correction',
      'healed',
      'moved',
      'split',
      'split-from',
      'outcome',
    ]) {
      for await (const { key, value } of scanAll(kv, scope, collection)) {
        found.set(`${scope} ${key.join('/')}`, JSON.stringify(value))
      }
    }
  }
  return found
}

/** Configuration is a fold of `changes`, and every operator was told what the fold says. */
export async function checkFold({ log, raw, changes, problem }: Facts, scheduler: Scheduler): Promise<void> {
  const host = createRawHost(scheduler)
  const fresh = {
    ...raw,
    log: bindLog(createLogStore({ partitions: PARTITIONS }), host, 'fold'),
    kv: bindKv(createKvStore(), host),
  }
  await prepare(fresh)
  // Owners of partitions may have appended more while everything stopped.
  const scopes = [SYSTEM, tenantScope('ws_model', 'live'), tenantScope('ws_model', 'test')]
  const upTo = Math.max(
    ...(await Promise.all(scopes.map(async (scope) => (await raw.kv.position(scope, 'changes')) ?? 0))),
  )
  const applied: typeof raw.log = {
    ...raw.log,
    append: fresh.log.append,
    last: async () => upTo,
    read: async (...args) => (await raw.log.read(...args)).filter(({ seq }) => seq <= upTo),
  }
  await foldChanges({ ...fresh, bus: bindBus(new Map(), host, () => undefined), log: applied }, host)
  const expected = await dump(fresh.kv)
  const actual = await dump(raw.kv)
  for (const [name, value] of expected) {
    const gone = name.includes('outcome/') && !actual.has(name)
    if (!gone && actual.get(name) !== value)
      problem('configuration is a fold of its changes', `${name}: ${actual.get(name)}, not ${value}`)
  }
  for (const name of actual.keys()) {
    if (!expected.has(name)) problem('configuration is a fold of its changes', `${name} is not in the fold`)
  }
  const outcomes = new Map(
    [...expected].filter(([name]) => name.includes('outcome/')).map(([, value]) => [value, true]),
  )
  for (const { draft, outcome } of changes) {
    if (outcome !== null && !outcomes.has(JSON.stringify(outcome)))
      problem('an operator is told what happened', `${draft.type}: ${JSON.stringify(outcome)}`)
  }
  const dead = log.side('dead', 0).archive.map(({ bytes }) => unpack(bytes) as Record<string, unknown>)
  const unreadable = log
    .side('changes', 0)
    .archive.filter(({ bytes }) => typeof (unpack(bytes) as { id?: unknown } | null)?.id !== 'string')
  for (const { seq } of unreadable) {
    if (!dead.some((l) => l.topic === 'changes' && l.seq === seq))
      problem('what cannot be decided has a dead letter', `changes/${seq}`)
  }
}
