// A line between two threads: what is called comes back as what it was, failures keep their class, and nothing that goes wrong with
// one message harms another.

import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { Conflict, Full, Told, Unavailable, Unreadable } from '../../src/lib/failures.ts'
import { type Line, openLine } from '../../src/lib/line.ts'

const outcome = async (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)

interface Ends {
  readonly near: Line
  readonly far: Line
  readonly errors: unknown[]
  readonly sent: unknown[]
  /** Puts a message on the channel that no line made. */
  readonly post: (message: unknown) => void
}

function open(t: Test): Ends {
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const errors: unknown[] = []
  const sent: unknown[] = []
  const near = openLine(
    {
      on: (event, listener) => port1.on(event, listener),
      postMessage(message, transfer) {
        sent.push(message)
        port1.postMessage(message, [...transfer])
      },
    },
    (error) => errors.push(error),
  )
  const far = openLine(port2, (error) => errors.push(error))
  return { near, far, errors, sent, post: (message) => port1.postMessage(message) }
}

t.test('calls are answered with what the other side gave, each its own, in both directions', async (t) => {
  const { near, far } = open(t)
  far.serve('add', (a: number, b: number) => a + b)
  near.serve('twice', async (text: string) => text + text)
  const values = [null, 0, -1.5, 'ünï', true, [1, [2]], { deep: { list: [null] } }, 2 ** 53 - 1]
  far.serve('same', (value: unknown) => value)
  const sums = Promise.all(Array.from({ length: 100 }, (_, n) => near.call('add', n, 1)))
  t.equal(await far.call('twice', 'ab'), 'abab')
  t.same(
    await sums,
    Array.from({ length: 100 }, (_, n) => n + 1),
  )
  t.same(await Promise.all(values.map((value) => near.call('same', value))), values)
  const bytes = (await near.call('same', Uint8Array.from([0, 255, 7]))) as Uint8Array
  t.same([...bytes], [0, 255, 7])
})

t.test('an answer that takes longer is overtaken by others', async (t) => {
  const { near, far } = open(t)
  const order: string[] = []
  let release = () => {}
  far.serve('slow', () => new Promise<void>((resolve) => (release = resolve)))
  far.serve('quick', () => 'quick')
  const slow = near.call('slow').then(() => order.push('slow'))
  await near.call('quick').then(() => order.push('quick'))
  release()
  await slow
  t.same(order, ['quick', 'slow'])
})

t.test(
  'calls of one turn go over in one message, and a flush sends what was called until then as it was',
  async (t) => {
    const { near, far, sent } = open(t)
    far.serve('text', (bytes: Uint8Array) => Buffer.from(bytes).toString())
    await Promise.all([1, 2, 3].map((n) => near.call('text', Buffer.from(`${n}`))))
    t.equal(sent.length, 1)
    const bytes = Buffer.from('before')
    const answer = near.call('text', bytes)
    near.flush()
    bytes.fill(0)
    t.equal(await answer, 'before')
    near.flush()
    t.equal(sent.length, 2, 'a flush of nothing sends nothing')
  },
)

t.test('failures keep their class and message, thrown or rejected', async (t) => {
  const { near, far } = open(t)
  const failures = [
    new Unavailable('gone'),
    new Full('no room'),
    new Conflict('another was first'),
    new Unreadable('damaged'),
    new RangeError('too many'),
    new TypeError('not a number'),
    new Error('else'),
  ]
  for (const failure of failures) {
    far.serve('throw', () => {
      throw failure
    })
    far.serve('reject', () => Promise.reject(failure))
    for (const name of ['throw', 'reject']) {
      const found = (await outcome(near.call(name))) as Error
      t.equal(found.constructor, failure.constructor, `${name} ${failure.constructor.name}`)
      t.equal(found.message, failure.message)
    }
  }
  class PortTaken extends Told {
    override readonly name = 'PortTaken'
  }
  far.serve('reject', () => Promise.reject(new PortTaken('8080 is in use')))
  const told = await outcome(near.call('reject'))
  t.ok(told instanceof Told, 'what a person is told stays that, whichever class of it')
  t.match(told, { message: '8080 is in use' })
  far.serve('reject', () => Promise.reject('a text'))
  t.match(await outcome(near.call('reject')), { message: 'a text' })
  t.match(await outcome(near.call('nothing')), { message: /nobody serves nothing/ })
})

t.test(
  'casts arrive in order, behind the calls made before them, and what taking one throws harms no other',
  async (t) => {
    const { near, far, errors } = open(t)
    const seen: unknown[] = []
    const broken = new Error('broken')
    far.serve('call', (n: number) => void seen.push(`call ${n}`))
    far.hear('cast', (n: number) => {
      if (n === 3) throw broken
      seen.push(`cast ${n}`)
    })
    const first = near.call('call', 1)
    near.cast('cast', 2)
    near.cast('cast', 3)
    near.cast('unheard', null)
    near.cast('cast', 4)
    await Promise.all([first, near.call('call', 5)])
    t.same(seen, ['call 1', 'cast 2', 'cast 4', 'call 5'])
    t.same(errors, [broken])
  },
)

t.test('what a cast transfers goes over without a copy', async (t) => {
  const { near, far } = open(t)
  const bytes = Uint8Array.from([1, 2, 3])
  const heard = new Promise<ArrayBuffer>((resolve) => far.hear('bytes', resolve))
  near.cast('bytes', bytes.buffer, [bytes.buffer])
  t.equal(bytes.length, 0)
  t.same([...new Uint8Array(await heard)], [1, 2, 3])
})

t.test('the end fails what is under way and what comes later, on the side that ends', async (t) => {
  const { near, far, errors } = open(t)
  const heard: unknown[] = []
  near.hear('late', (message) => heard.push(message))
  far.serve('never', () => new Promise(() => {}))
  const asked = [outcome(near.call('never')), outcome(near.call('never'))]
  await new Promise((resolve) => setTimeout(resolve, 5))
  asked.push(outcome(near.call('never')))
  near.end()
  for (const one of await Promise.all(asked)) t.ok(one instanceof Unavailable)
  t.ok((await outcome(near.call('never'))) instanceof Unavailable)
  near.cast('late', 1)
  far.cast('late', 2)
  near.end()
  await new Promise((resolve) => setTimeout(resolve, 5))
  t.same([heard, errors], [[], []])
})

t.test('what cannot be packed fails the call it belongs to and no other', async (t) => {
  const { near, far, errors } = open(t)
  const unpackable = 2n ** 70n
  far.serve('same', (value: unknown) => value)
  far.serve('unpackable', () => unpackable)
  const before = near.call('same', 'before')
  const call = outcome(near.call('same', unpackable))
  const answer = outcome(near.call('unpackable'))
  const after = near.call('same', 'after')
  t.same(await Promise.all([before, after]), ['before', 'after'])
  t.ok((await call) instanceof Error)
  t.ok((await answer) instanceof Error)
  t.same(errors, [])
})

t.test('a message that cannot be read is told and ends nothing', async (t) => {
  const { near, far, errors, post } = open(t)
  far.serve('same', (value: unknown) => value)
  for (const kind of ['calls', 'answers']) post({ kind, bytes: Uint8Array.from([0xc1]) })
  t.equal(await near.call('same', 1), 1)
  t.equal(errors.length, 2)
})
