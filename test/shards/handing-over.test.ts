// What one shard hands over to another arrives as it was, whatever the turn brought besides, and nobody waits for a shard that is lost.

import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { IDENTIFY_BODY_BYTES_MAX } from '../../src/domain/identify.ts'
import type { HandedBack, HandedOver } from '../../src/ingress/hand-over.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openLine } from '../../src/lib/line.ts'
import { type HandingOver, openHandingOver } from '../../src/shards/handing-over.ts'

const CALL: HandedOver = {
  key: 'pk_live_1',
  address: '203.0.113.7',
  hopsBefore: 2,
  isFirstParty: true,
  cookieToken: 'st_1',
  trace: null,
  evidence: ['Mozilla/5.0 ü', '', 'en'],
  body: Buffer.from('{}'),
}
const BACK: HandedBack = { status: 200, headers: [['Cache-Control', 'no-store']], body: '{"ü":1}' }

interface Ends {
  readonly near: HandingOver
  readonly messages: () => number
  readonly errors: unknown[]
}

function open(t: Test, serve: (call: HandedOver) => Promise<HandedBack>): Ends {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const errors: unknown[] = []
  let messages = 0
  const counted = {
    on: (event: 'message', listener: (message: unknown) => void) => port1.on(event, listener),
    postMessage(message: unknown, transfer: readonly ArrayBuffer[]) {
      messages++
      port1.postMessage(message, [...transfer])
    },
  }
  const near = openHandingOver(
    openLine(counted as Parameters<typeof openLine>[0], (error) => errors.push(error)),
    serve,
    setImmediate,
  )
  openHandingOver(
    openLine(port2, (error) => errors.push(error)),
    serve,
    setImmediate,
  )
  return { near, messages: () => messages, errors }
}

const told = ({ body, ...call }: HandedOver): string => JSON.stringify([call, Buffer.from(body).toString()])

t.test(
  'calls of a turn go over in one message, each with its own body, and are answered each by its own',
  async (t) => {
    const { near, messages } = open(t, async (call) => ({ ...BACK, body: told(call) }))
    const calls = ['{"a":1}', '', '{"b":"ü"}'].map((body, n) => ({ ...CALL, hopsBefore: n, body: Buffer.from(body) }))
    const answers = await Promise.all(calls.map(near.handOver))
    t.same(
      answers,
      calls.map((call) => ({ ...BACK, body: told(call) })),
    )
    t.equal(messages(), 1)
    const later = await near.handOver({ ...CALL, trace: 'traced', cookieToken: null, isFirstParty: false })
    t.equal(later.body, told({ ...CALL, trace: 'traced', cookieToken: null, isFirstParty: false }))
    t.equal(messages(), 2)
  },
)

t.test('a body may change as soon as its call was handed over', async (t) => {
  const { near } = open(t, async (call) => ({ ...BACK, body: told(call) }))
  const body = Buffer.from('before')
  const answer = near.handOver({ ...CALL, body })
  body.fill(0)
  t.equal((await answer).body, told({ ...CALL, body: Buffer.from('before') }))
})

t.test('bodies that fill a message go on in the next', async (t) => {
  const { near, messages } = open(t, async ({ body }) => ({
    ...BACK,
    body: `${body.length} ${body[0]} ${body.at(-1)}`,
  }))
  const calls = Array.from({ length: 5 }, (_, n) => ({
    ...CALL,
    body: new Uint8Array(IDENTIFY_BODY_BYTES_MAX).fill(n),
  }))
  const answers = await Promise.all(calls.map(near.handOver))
  t.same(
    answers.map(({ body }) => body),
    calls.map((_, n) => `${IDENTIFY_BODY_BYTES_MAX} ${n} ${n}`),
  )
  t.equal(messages(), 3)
})

t.test('an answer comes back with all it says, and a failure as a failure', async (t) => {
  const commonHeaders = [['X-Request-Id', 'call_1']] as const
  const outcomes: (() => Promise<HandedBack>)[] = [
    async () => ({ ...BACK, status: 500, commonHeaders }),
    () => Promise.reject(new Error('broken')),
    async () => BACK,
  ]
  const { near, errors } = open(t, ({ hopsBefore }) => (outcomes[hopsBefore] as () => Promise<HandedBack>)())
  const [first, second, third] = await Promise.allSettled(
    outcomes.map((_, n) => near.handOver({ ...CALL, hopsBefore: n })),
  )
  t.same(first, { status: 'fulfilled', value: { ...BACK, status: 500, commonHeaders } })
  t.match(second, { status: 'rejected', reason: { message: 'broken' } })
  t.same(third, { status: 'fulfilled', value: BACK })
  t.same(errors, [])
})

t.test('the end fails what is under way and what comes later', async (t) => {
  const { near } = open(t, () => new Promise(() => {}))
  const calls = [near.handOver(CALL), near.handOver(CALL)]
  near.end()
  calls.push(near.handOver(CALL))
  for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) {
    t.equal(status, 'rejected')
    t.ok(reason instanceof Unavailable)
  }
})
