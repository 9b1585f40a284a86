import t from 'tap'
import { NeedsRebuild, runControl } from '../../src/control/owner.ts'
import type { ConditionGroup } from '../../src/domain/rule.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { unpack } from '../../src/lib/codec.ts'
import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import { type Command, type CommandDraft, type CommandOutcome, encodeCommand } from '../../src/records/commands.ts'
import { RULESET, type RulesetMeta, readRule, readRuleSlots, readRuleset, ruleBytes } from '../../src/records/rules.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import {
  createRule,
  createWorkspace,
  dump,
  openPorts,
  type Ports,
  prepare,
  startOwner,
  startSubmit,
} from '../helpers/control-plane.ts'
import { faulty } from '../helpers/faulty.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const ABOUT_A = { workspace: 'ws_a', env: 'live', actor: 'test' } as const
const ruleId = (n: number) => `rul_${String(n).padStart(20, '0')}`

async function until(what: string, check: () => Promise<boolean> | boolean): Promise<void> {
  for (let i = 0; i < 6_000; i++) {
    if (await check()) return
    await systemClock.sleep(10)
  }
  throw new Error(`never came true: ${what}`)
}

async function opened(t: Parameters<typeof openPorts>[0]): Promise<Ports> {
  const ports = await openPorts(t)
  await prepare(ports)
  return ports
}

/** A few hundred commands of all kinds, many of them refused. */
function storm(seed: number): CommandDraft[] {
  const { int, chance, pick } = rng(seed)
  const drafts: CommandDraft[] = [createWorkspace('ws_a'), createWorkspace('ws_b')]
  for (let i = 0; i < 150; i++) {
    const workspace = pick(['ws_a', 'ws_a', 'ws_b', 'ws_unknown'])
    const id = ruleId(int(12))
    const key = {
      id: `key_${int(8)}`,
      kind: 'secret' as const,
      digest: String(int(10)).repeat(64),
      last4: 'abcd',
      label: null,
      scopes: null,
      origins: null,
      expiresAt: null,
    }
    const maxima = { rulesMax: 3, activeMax: 2 }
    const about = { workspace, env: 'live', actor: 'storm' } as const
    const options: CommandDraft[] = [
      createRule(workspace, id, { maxima, status: chance(0.5) ? 'live' : 'draft' }),
      { ...about, type: 'rule.update', data: { id, changes: { priority: int(30) - 15 }, maxima } },
      { ...about, type: 'rule.update', data: { id, changes: { status: 'live' }, maxima }, expectVersion: int(200) },
      { ...about, type: 'rule.delete', data: { id } },
      { ...about, type: 'key.create', data: { key, keysMax: 5 } },
      { ...about, type: 'key.rotate', data: { key, keysMax: 5 } },
      { ...about, env: null, type: 'key.revoke', data: { id: key.id } },
      { ...about, env: null, type: 'workspace.update', data: { settings: { clientResult: 'verdict' } } },
      createWorkspace(workspace === 'ws_unknown' ? 'ws_a' : workspace),
    ]
    drafts.push(pick(options))
  }
  // Whatever was drawn, each kind of refusal is among them.
  const about = { workspace: 'ws_a', env: 'live', actor: 'storm' } as const
  for (let n = 0; n < 4; n++) drafts.push(createRule('ws_a', ruleId(20 + n), { maxima: { rulesMax: 3, activeMax: 2 } }))
  drafts.push(createWorkspace('ws_a'), { ...about, type: 'rule.delete', data: { id: ruleId(30) } })
  return drafts
}

const WORKSPACES = ['ws_a', 'ws_b', 'ws_unknown']

async function copyChanges(from: Ports, to: Ports): Promise<void> {
  const records = await from.log.read('changes', 0, 0, { recordsMax: 1_024, bytesMax: 50_000_000, waitMsMax: 0 })
  await to.log.append(
    'changes',
    0,
    records.map(({ bytes }) => bytes),
  )
}

async function caughtUp({ log, kv }: Ports): Promise<void> {
  const last = await log.last('changes', 0)
  await until('the owner has applied everything', async () => (await kv.position('system', 'changes.reader')) === last)
}

t.test('a replay from the first command gives the same records and the same refusals', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const first = await opened(t)
  startOwner(t, first)
  const submit = startSubmit(t, first)
  const outcomes: CommandOutcome[] = []
  for (const draft of storm(seed)) outcomes.push(await submit(draft))
  t.ok(
    outcomes.some(({ ok }) => ok),
    'some commands were applied',
  )
  const codes = new Set(outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.code])))
  for (const code of ['conflict', 'not_found', 'resource_limit_reached'] as const)
    t.ok(codes.has(code), `refused: ${code}`)

  const second = await opened(t)
  await copyChanges(first, second)
  startOwner(t, second)
  await caughtUp(second)
  t.equal(await dump(second.kv, WORKSPACES), await dump(first.kv, WORKSPACES))
})

t.test('two owners at once apply every command once', async (t) => {
  const seed = 7
  const ports = await opened(t)
  const owners = [startOwner(t, ports), startOwner(t, ports)]
  const submit = startSubmit(t, ports)
  const drafts = storm(seed)
  await submit(drafts[0] as CommandDraft)
  await submit(drafts[1] as CommandDraft)
  await Promise.all(drafts.slice(2).map((draft) => submit(draft)))
  await caughtUp(ports)
  for (const owner of owners) await owner.stop()

  const alone = await opened(t)
  await copyChanges(ports, alone)
  startOwner(t, alone)
  await caughtUp(alone)
  t.equal(await dump(ports.kv, WORKSPACES), await dump(alone.kv, WORKSPACES))
})

t.test('an owner that dies between any two commits leaves nothing out and repeats nothing', async (t) => {
  class Killed extends Error {}
  const calm = await opened(t)
  startOwner(t, calm)
  const submit = startSubmit(t, calm)
  for (const draft of storm(11).slice(0, 60)) await submit(draft)
  await caughtUp(calm)

  for (const kind of ['before', 'after'] as const) {
    const ports = await opened(t)
    await copyChanges(calm, ports)
    const last = await ports.log.last('changes', 0)
    let deaths = 0
    // Each life ends at its third commit, so every gap between two commits is the place of some death.
    while ((await ports.kv.position('system', 'changes.reader')) !== last) {
      const kv = faulty(ports.kv, (method, call) =>
        method === 'commit' && call === 2 ? { kind, error: new Conflict('killed', { cause: new Killed() }) } : null,
      )
      const owner = startOwner(t, { ...ports, kv })
      await Promise.race([
        owner.over.catch((error) => {
          if (!(error.cause instanceof Killed)) throw error
          deaths++
        }),
        caughtUp(ports),
      ])
      await owner.stop().catch(() => {})
    }
    t.ok(deaths > 15, `${deaths} deaths ${kind} a commit`)
    t.equal(await dump(ports.kv, WORKSPACES), await dump(calm.kv, WORKSPACES))
  }
})

t.test('a store that is down for a while only delays', async (t) => {
  const ports = await opened(t)
  let broken = 5
  const kv = faulty(ports.kv, (method) =>
    method === 'commit' && broken-- > 0
      ? { kind: broken % 2 ? 'before' : 'after', error: new Unavailable('down') }
      : null,
  )
  const owner = startOwner(t, { ...ports, kv })
  const submit = startSubmit(t, ports)
  t.match(await submit(createWorkspace('ws_a')), { ok: true })
  t.match(await submit(createRule('ws_a', ruleId(1))), { ok: true, rule: { priority: 10 } })
  t.ok(owner.reports.some(({ kind }) => kind === 'stalled'))
})

t.test('a command nobody can read goes to the dead letters and holds up nothing', async (t) => {
  const ports = await opened(t)
  const owner = startOwner(t, ports)
  const submit = startSubmit(t, ports)
  const garbage = [
    new Uint8Array(0),
    new Uint8Array([0xc1]),
    Buffer.from('{"type":"rule.create"}'),
    new Uint8Array(300_000),
  ]
  await ports.log.append('changes', 0, garbage)
  t.match(await submit(createWorkspace('ws_a')), { ok: true })
  t.equal(owner.reports.filter(({ kind }) => kind === 'dead').length, garbage.length)
  const dead = await ports.log.read('dead', 0, 0, { recordsMax: 10, bytesMax: 10_000_000, waitMsMax: 0 })
  t.same(
    dead.map(({ bytes }) => Buffer.from((unpack(bytes) as { bytes: Uint8Array }).bytes).toString('hex')),
    garbage.map((bytes) => Buffer.from(bytes).toString('hex')),
  )
})

t.test('without its position the owner stops and asks for a rebuild', async (t) => {
  const ports = await openPorts(t)
  const signal = new AbortController().signal
  await t.rejects(runControl({ ...ports, clock: systemClock, signal, report: () => {} }), {
    name: 'NeedsRebuild',
    message: /run rebuild/,
  })
})

t.test('without the position of a workspace that exists the owner stops instead of starting at zero', async (t) => {
  const ports = await opened(t)
  const owner = startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_a'))
  await owner.stop()
  const lossy: Kv = {
    ...ports.kv,
    position: async (scope, source) => (scope === 'w/ws_a/live' ? null : ports.kv.position(scope, source)),
  }
  const second = startOwner(t, { ...ports, kv: lossy })
  const command = { ...createRule('ws_a', ruleId(1)), id: `cmd_${'0'.repeat(26)}`, at: 1 } as Command
  await ports.log.append('changes', 0, [encodeCommand(command)])
  await t.rejects(second.over, NeedsRebuild)
})

t.test('a ruleset is read whole at one revision, in order of evaluation', async (t) => {
  const ports = await opened(t)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_a'))
  for (const [n, priority] of [
    [1, 30],
    [2, -5],
    [3, 30],
    [4, null],
    [5, 0],
  ] as const) {
    await submit(createRule('ws_a', ruleId(n), { priority }))
  }
  const ruleset = await readRuleset(ports.kv, 'ws_a', 'live')
  t.same(
    ruleset?.rules.map(({ id }) => id),
    [2, 5, 1, 3, 4].map(ruleId),
  )
  t.equal(ruleset?.rules.at(-1)?.priority, 40, 'the default priority is the highest one plus 10')
  t.equal(ruleset?.workspace.id, 'ws_a')
  t.same(await readRuleset(ports.kv, 'ws_unknown', 'live'), null)
  t.same((await readRuleset(ports.kv, 'ws_a', 'test'))?.rules, [])

  await submit({
    type: 'rule.update',
    workspace: 'ws_a',
    env: 'live',
    actor: 'test',
    data: { id: ruleId(4), changes: { priority: -100 }, maxima: { rulesMax: 9, activeMax: 9 } },
  })
  t.same(
    (await readRuleSlots(ports.kv, 'ws_a', 'live')).map(({ id }) => id),
    [4, 2, 5, 1, 3].map(ruleId),
  )
})

t.test(
  'the rules of an environment hold so many bytes together, also where an earlier release counted none',
  async (t) => {
    const ports = await opened(t)
    startOwner(t, ports)
    const submit = startSubmit(t, ports)
    await submit(createWorkspace('ws_a'))
    const maxima = { rulesMax: 9, activeMax: 9, bytesMax: 1_200 }
    const conditionsOf = (bytes: number) =>
      ({
        operator: 'AND',
        rules: [{ field: 'linkedId', operator: 'equals', value: 'x'.repeat(bytes) }],
      }) as ConditionGroup
    const ofAbout = (n: number, bytes: number) =>
      createRule('ws_a', ruleId(n), { conditions: conditionsOf(bytes), maxima })
    const update = (n: number, changes: object) =>
      submit({
        ...{ type: 'rule.update', workspace: 'ws_a', env: 'live', actor: 'test' },
        data: { id: ruleId(n), changes, maxima },
      } as CommandDraft)
    const FULL = { ok: false, code: 'resource_limit_reached' }
    t.match(await submit(ofAbout(1, 400)), { ok: true })
    t.match(await submit(ofAbout(2, 900)), FULL)
    t.match(await submit(ofAbout(2, 200)), { ok: true })
    t.match(await update(1, { conditions: conditionsOf(800) }), FULL)
    t.match(await update(1, { status: 'draft' }), { ok: true }, 'what grows by nothing is changed')

    const scope = tenantScope('ws_a', 'live')
    const stored = async () => (await ports.kv.get<RulesetMeta>(scope, [RULESET]))[0]?.value
    const counted = await stored()
    const rules = await readRuleset(ports.kv, 'ws_a', 'live')
    t.equal(
      counted?.bytes,
      rules?.rules.reduce((sum, rule) => sum + ruleBytes(rule), 0),
    )
    const { bytes: _, ...uncounted } = counted as RulesetMeta
    await ports.kv.commit([{ scope, put: [{ key: RULESET, value: uncounted }] }])
    await submit({ ...ABOUT_A, env: null, type: 'workspace.update', data: { settings: { clientResult: 'verdict' } } })
    t.match(await submit(ofAbout(3, 900)), FULL)
    t.match(await submit(ofAbout(3, 20)), { ok: true })
    t.match(await update(1, { conditions: conditionsOf(5) }), { ok: true })
    t.match(await submit(ofAbout(4, 300)), { ok: true }, 'there is room again')
    t.match(await submit({ ...ABOUT_A, type: 'rule.delete', data: { id: ruleId(2) } } as CommandDraft), { ok: true })
    const left = await readRuleset(ports.kv, 'ws_a', 'live')
    t.equal(
      (await stored())?.bytes,
      left?.rules.reduce((sum, rule) => sum + ruleBytes(rule), 0),
    )
  },
)

t.test('settings of a workspace make a new ruleset revision in both environments', async (t) => {
  const ports = await opened(t)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_a'))
  const outcome = await submit({
    type: 'workspace.update',
    workspace: 'ws_a',
    env: null,
    actor: 'test',
    data: { plan: 'starter', settings: { clientResult: 'verdict' } },
  })
  for (const env of ['live', 'test'] as const) {
    t.match(await readRuleset(ports.kv, 'ws_a', env), {
      revision: outcome.seq,
      workspace: { plan: 'starter', settings: { clientResult: 'verdict' }, tokenSecret: 'secret' },
    })
  }
})

t.test('an update merges into the rule as it is when it is applied', async (t) => {
  const ports = await opened(t)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_a'))
  const sideEffects = [{ type: 'log', level: 'info' }] as const
  await submit(createRule('ws_a', ruleId(1), { action: { verdict: 'challenge', challengeType: 'otp', sideEffects } }))
  const update = (changes: object, expectVersion?: number): CommandDraft => ({
    type: 'rule.update',
    workspace: 'ws_a',
    env: 'live',
    actor: 'test',
    data: { id: ruleId(1), changes, maxima: { rulesMax: 9, activeMax: 9 } },
    ...(expectVersion === undefined ? {} : { expectVersion }),
  })
  await submit(update({ action: { verdict: 'block' } }))
  t.same((await readRule(ports.kv, 'ws_a', 'live', ruleId(1)))?.action, { verdict: 'block', sideEffects })
  const cleared = await submit(update({ sideEffects: [] }))
  t.same((await readRule(ports.kv, 'ws_a', 'live', ruleId(1)))?.action, { verdict: 'block', sideEffects: [] })
  t.match(await submit(update({ name: 'x' }, cleared.seq - 1)), { ok: false, code: 'conflict' })
  t.match(await submit(update({ name: 'x' }, cleared.seq)), { ok: true })
})

t.test('a digest that was ever a key is never accepted again, under no id and in no workspace', async (t) => {
  const ports = await opened(t)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_a'))
  await submit(createWorkspace('ws_b'))
  const create = (workspace: string, id: string): CommandDraft => {
    const about = { label: null, scopes: null, origins: null, expiresAt: null }
    const key = { id, kind: 'secret' as const, digest: 'a'.repeat(64), last4: 'abcd', ...about }
    return { type: 'key.create', workspace, env: 'live', actor: 'test', data: { key, keysMax: 5 } }
  }
  t.match(await submit(create('ws_a', 'key_1')), { ok: true })
  const revoke = { type: 'key.revoke', workspace: 'ws_a', env: null, actor: 'test', data: { id: 'key_1' } } as const
  t.match(await submit(revoke), { ok: true, revoked: ['key_1'] })
  t.match(await submit(revoke), { ok: false, code: 'not_found' })
  for (const [workspace, id] of [
    ['ws_a', 'key_1'],
    ['ws_a', 'key_2'],
    ['ws_b', 'key_1'],
  ] as const) {
    t.match(await submit(create(workspace, id)), { ok: false, code: 'conflict' })
  }
})
