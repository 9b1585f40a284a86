// What every backend of the bus guarantees: hints, in order, never on the publisher's stack.
import type { Test } from 'tap'
import type { Bus } from '../../src/bus/bus.ts'

export interface OpenedBus {
  readonly bus: Bus
  /** What receivers threw. */
  readonly errors: readonly unknown[]
}

const SETTLE_MS_MAX = 20_000

export async function until(holds: () => boolean): Promise<boolean> {
  const deadline = performance.now() + SETTLE_MS_MAX
  while (!holds() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5))
  return holds()
}

export function busContract(t: Test, name: string, open: () => Promise<OpenedBus>): void {
  t.test(`bus contract: ${name}`, async (t) => {
    const guarantee = (title: string, check: (t: Test, opened: OpenedBus) => Promise<void>) =>
      t.test(title, async (t) => {
        const opened = await open()
        t.teardown(() => opened.bus.close())
        await check(t, opened)
      })

    await guarantee('a subscriber receives its subject in order and no other', async (t, { bus }) => {
      const seen: unknown[] = []
      bus.subscribe('reply.a', (message) => seen.push(message))
      bus.subscribe('reply.b', () => t.fail('wrong subject'))
      const messages = Array.from({ length: 200 }, (_, count) => ({ count, nested: { list: [count, 'x', null] } }))
      for (const message of messages) bus.publish('reply.a', message)
      bus.publish('reply', { to: 'nobody' })
      await until(() => seen.length >= messages.length)
      t.same(seen, messages)
    })

    await guarantee('a message never arrives while publish is running', async (t, { bus }) => {
      let publishing = false
      let seen = 0
      bus.subscribe('s', (message) => {
        t.equal(publishing, false)
        seen += 1
        if (message === 'first') {
          publishing = true
          bus.publish('s', 'second')
          publishing = false
        }
      })
      publishing = true
      bus.publish('s', 'first')
      publishing = false
      t.ok(await until(() => seen === 2))
    })

    await guarantee('every subscriber of a subject gets its own delivery', async (t, { bus }) => {
      const seen: string[] = []
      bus.subscribe('s', () => seen.push('a'))
      bus.subscribe('s', () => seen.push('b'))
      bus.publish('s', 1)
      t.ok(await until(() => seen.length === 2))
      t.same(seen.sort(), ['a', 'b'])
    })

    await guarantee('a receiver that throws is reported and harms nobody', async (t, { bus, errors }) => {
      const broken = new Error('broken receiver')
      const seen: unknown[] = []
      bus.subscribe('s', () => {
        throw broken
      })
      bus.subscribe('s', (message) => seen.push(message))
      bus.publish('s', 1)
      bus.publish('s', 2)
      t.ok(await until(() => seen.length === 2 && errors.length === 2))
      t.same(seen, [1, 2])
      t.same(errors, [broken, broken])
    })

    await guarantee('nothing arrives after unsubscribing or closing', async (t, { bus }) => {
      let seen = 0
      const stop = bus.subscribe('s', () => {
        seen += 1
      })
      bus.publish('s', 1)
      t.ok(await until(() => seen === 1))
      bus.publish('s', 2)
      stop()
      stop()
      bus.subscribe('s', () => t.fail('delivered after close'))
      bus.publish('s', 3)
      await bus.close()
      bus.publish('s', 4)
      await new Promise((resolve) => setTimeout(resolve, 30))
      t.equal(seen, 1)
    })
  })
}
