import t from 'tap'
import { openPropagation } from '../../src/control/propagation.ts'
import { ApiError } from '../../src/domain/errors.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Full, Unavailable } from '../../src/lib/failures.ts'
import { registerEvaluator, unregister } from '../../src/records/evaluators.ts'
import { publishHint } from '../../src/records/hints.ts'
import { createRule, createWorkspace, openPorts, prepare, startOwner, startSubmit } from '../helpers/control-plane.ts'
import { faulty } from '../helpers/faulty.ts'

t.test('an outcome whose hint is lost arrives all the same', async (t) => {
  const ports = await openPorts(t)
  await prepare(ports)
  const deaf = faulty(ports.bus, (method) => (method === 'publish' ? { kind: 'lost' } : null))
  startOwner(t, { ...ports, bus: deaf })
  const submit = startSubmit(t, ports)
  t.match(await submit(createWorkspace('ws_a')), { ok: true })
  t.match(await submit(createRule('ws_a', 'rul_1')), { ok: true })
  t.match(await submit(createRule('ws_unknown', 'rul_1')), { ok: false, code: 'not_found' })
})

t.test('a command that cannot be appended is unavailable with a time to retry', async (t) => {
  const ports = await openPorts(t)
  for (const error of [new Full('no room'), new Unavailable('gone')]) {
    const log = faulty(ports.log, (method) => (method === 'append' ? { kind: 'before', error } : null))
    const submit = startSubmit(t, { ...ports, log })
    const failure = await submit(createWorkspace('ws_a')).catch((e) => e)
    t.ok(failure instanceof ApiError)
    t.match(failure, { code: 'unavailable', detail: { retryAfter: Number } })
  }
})

t.test('a command nobody applies is unavailable after a bounded wait', async (t) => {
  const ports = await openPorts(t)
  let passedMs = 0
  // Time passes only where it is waited for.
  const clock: Clock = {
    ...systemClock,
    monotonic: () => passedMs,
    async sleep(ms) {
      passedMs += ms
      await systemClock.sleep(0)
    },
  }
  await t.rejects(startSubmit(t, ports, clock)(createWorkspace('ws_a')), { code: 'unavailable' })
  t.ok(passedMs >= 4_000 && passedMs <= 6_000, `${passedMs} ms`)
})

t.test('a command larger than a record is refused before it is appended', async (t) => {
  const ports = await openPorts(t)
  const submit = startSubmit(t, ports)
  const draft = createRule('ws_a', 'rul_1', { name: 'x'.repeat(900_000) })
  await t.rejects(submit(draft), { code: 'payload_too_large' })
  t.equal(await ports.log.last('changes', 0), 0)
})

t.test('a change has propagated when every registered evaluator has confirmed it', async (t) => {
  const ports = await openPorts(t)
  const { awaitPropagation, close } = openPropagation({ ...ports, clock: systemClock, observe: () => undefined })
  t.teardown(close)
  const question = (revision: number) => ({
    workspace: 'ws_a',
    env: 'live' as const,
    revision,
    startedAt: systemClock.monotonic(),
  })

  t.match(await awaitPropagation(question(1)), { propagated: false }, 'nobody is registered')

  for (const evaluator of ['one', 'two']) await registerEvaluator(ports.kv, evaluator, new Map())
  const confirm = (evaluator: string, revision: number) =>
    publishHint(ports.bus, 'ruleset.confirmed', { evaluator, workspace: 'ws_a', env: 'live', revision })

  const asked = awaitPropagation(question(5))
  confirm('one', 5)
  confirm('two', 4)
  setTimeout(() => confirm('two', 6), 150)
  const answer = await asked
  t.equal(answer.propagated, true)
  t.ok(answer.propagationMs >= 140, `${answer.propagationMs} ms`)

  const late = await awaitPropagation(question(7))
  t.equal(late.propagated, false)
  t.ok(late.propagationMs >= 1_990, `${late.propagationMs} ms`)

  await registerEvaluator(ports.kv, 'one', new Map([['ws_a/live', 8]]))
  await registerEvaluator(ports.kv, 'two', new Map([['ws_a/live', 8]]))
  t.match(await awaitPropagation(question(8)), { propagated: true }, 'a heartbeat replaces a lost hint')

  const asked9 = awaitPropagation(question(9))
  confirm('one', 9)
  await unregister(ports.kv, 'two')
  t.match(await asked9, { propagated: true }, 'whoever left need not confirm')
})
