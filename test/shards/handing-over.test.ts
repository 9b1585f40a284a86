// What one shard hands over to another arrives as it was, whatever the turn brought besides, and nobody waits for a shard that is lost.

import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { IDENTIFY_BODY_BYTES_MAX } from '../../src/domain/identify.ts'
import type { HandedBack, HandedOver, HandOver } from '../../src/ingress/hand-over.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openLine } from '../../src/lib/line.ts'
import { type HandingOver, openHandingOver, type Whens } from '../../src/shards/handing-over.ts'
import { handedOver } from '../helpers/handed-over.ts'

const CALL: HandedOver = {
  key: 'pk_live_1',
  address: '203.0.113.7',
  hopsBefore: 2,
  isFirstParty: true,
  cookieToken: 'st_1',
  trace: null,
  evidence: ['Mozilla/5.0 ü', '', 'en'],
  body: Buffer.from('{}'),
  bodyHash: 281474976710655,
}
const BACK: HandedBack = { status: 200, headers: [['Cache-Control', 'no-store']], body: '{"ü":1}' }

interface Ends {
  readonly near: HandingOver
  readonly handOver: (call: HandedOver) => Promise<HandedBack>
  readonly messages: () => number
  readonly errors: unknown[]
}

const WHENS: Whens = { calls: setImmediate, answers: setImmediate, next: setImmediate }

function open(t: Test, answering: (call: HandedOver) => Promise<HandedBack>): Ends {
  const serve: HandOver = (call, answer) => void answering(call).then(answer, answer)
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
    WHENS,
  )
  openHandingOver(
    openLine(port2, (error) => errors.push(error)),
    serve,
    WHENS,
  )
  return { near, handOver: (call) => handedOver(near.handOver, call), messages: () => messages, errors }
}

const told = ({ body, ...call }: HandedOver): string => JSON.stringify([call, Buffer.from(body).toString()])

t.test(
  'calls of a turn go over in one message, each with its own body, and are answered each by its own',
  async (t) => {
    const { handOver, messages } = open(t, async (call) => ({ ...BACK, body: told(call) }))
    const calls = ['{"a":1}', '', '{"b":"ü"}'].map((body, n) => ({ ...CALL, hopsBefore: n, body: Buffer.from(body) }))
    const answers = await Promise.all(calls.map(handOver))
    t.same(
      answers,
      calls.map((call) => ({ ...BACK, body: told(call) })),
    )
    t.equal(messages(), 1)
    const later = await handOver({ ...CALL, trace: 'traced', cookieToken: null, isFirstParty: false })
    t.equal(later.body, told({ ...CALL, trace: 'traced', cookieToken: null, isFirstParty: false }))
    t.equal(messages(), 2)
  },
)

t.test('a body may change as soon as its call was handed over', async (t) => {
  const { handOver } = open(t, async (call) => ({ ...BACK, body: told(call) }))
  const body = Buffer.from('before')
  const answer = handOver({ ...CALL, body })
  body.fill(0)
  t.equal((await answer).body, told({ ...CALL, body: Buffer.from('before') }))
})

t.test('bodies that fill a message go on in the next', async (t) => {
  const { handOver, messages } = open(t, async ({ body }) => ({
    ...BACK,
    body: `${body.length} ${body[0]} ${body.at(-1)}`,
  }))
  const calls = Array.from({ length: 5 }, (_, n) => ({
    ...CALL,
    body: new Uint8Array(IDENTIFY_BODY_BYTES_MAX).fill(n),
  }))
  const answers = await Promise.all(calls.map(handOver))
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
  const { handOver, errors } = open(t, ({ hopsBefore }) => (outcomes[hopsBefore] as () => Promise<HandedBack>)())
  const [first, second, third] = await Promise.allSettled(outcomes.map((_, n) => handOver({ ...CALL, hopsBefore: n })))
  t.same(first, { status: 'fulfilled', value: { ...BACK, status: 500, commonHeaders } })
  t.match(second, { status: 'rejected', reason: { message: 'broken' } })
  t.same(third, { status: 'fulfilled', value: BACK })
  t.same(errors, [])
})

t.test('the end fails what is under way and what comes later', async (t) => {
  const { near, handOver } = open(t, () => new Promise(() => {}))
  const calls = [handOver(CALL), handOver(CALL)]
  near.end()
  calls.push(handOver(CALL))
  for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) {
    t.equal(status, 'rejected')
    t.ok(reason instanceof Unavailable)
  }
})

t.test(
  'half of what is under way is served in a turn, the rest behind it, in the order in which it came',
  async (t) => {
    const order: number[] = []
    let hears: (message: never) => void = () => undefined
    let turns: (() => void)[] = []
    function turn(): void {
      const acts = turns
      turns = []
      for (const act of acts) act()
    }
    const later = (act: () => void) => void turns.push(act)
    const far = openHandingOver(
      {
        cast: () => undefined,
        hear(name, take) {
          if (name === 'identify') hears = take
        },
      },
      ({ hopsBefore, body }) => {
        t.same([...body], [hopsBefore])
        order.push(hopsBefore)
      },
      { ...WHENS, next: later },
    )
    const near = openHandingOver(
      { cast: (_, message) => hears(message as never), hear: () => undefined },
      () => t.fail('nobody calls this one'),
      { ...WHENS, calls: later },
    )
    const served: number[] = []
    for (const count of [25, 75]) {
      const first = order.length
      for (let n = first; n < first + count; n++) {
        near.handOver({ ...CALL, hopsBefore: n, body: Uint8Array.of(n) }, () => undefined)
      }
      turn()
      t.ok(far.isBehind())
      for (; far.isBehind(); served.push(order.length)) turn()
    }
    // All of a few; half of the hundred of which none is answered; the rest.
    t.same(served, [25, 75, 100])
    t.same(
      order,
      Array.from({ length: 100 }, (_, n) => n),
    )
    t.ok(near.isWaiting())
  },
)

t.test('a few calls do not wake the other shard from its sleep, and many do', async (t) => {
  const woke: boolean[] = []
  const sends: (() => void)[] = []
  const near = openHandingOver(
    { cast: (_, __, ___, wakes) => woke.push(wakes ?? true), hear: () => undefined },
    () => t.fail('nobody calls this one'),
    { ...WHENS, calls: (send) => sends.push(send) },
  )
  for (const count of [1, 31, 32]) {
    for (let n = 0; n < count; n++) near.handOver(CALL, () => undefined)
    for (const send of sends.splice(0)) send()
  }
  t.same(woke, [false, false, true])
})
