// The bus as a thread sees it that has no connection of its own, over a real channel: the common guarantees, and that what a thread
// listened to ends with it.

import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { openRemoteBus, serveBus } from '../../src/bus/remote.ts'
import { openLine } from '../../src/lib/line.ts'
import { pause } from '../helpers/processes.ts'
import { busContract, until } from './bus.ts'

function open() {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const far = openLocalBus({ onError })
  const thread = () => {
    const { port1, port2 } = new MessageChannel()
    const near = openLine(port1, onError)
    const bus = openRemoteBus(openLine(port2, onError), onError)
    const end = serveBus(near, far)
    return {
      end,
      bus: {
        ...bus,
        async close() {
          await bus.close()
          port1.close()
        },
      },
    }
  }
  return { far, errors, thread }
}

busContract(t, 'remote', async () => {
  const { thread, errors } = open()
  return { bus: thread().bus, errors }
})

t.test('threads and their process hear each other, each message once', async (t) => {
  const { far, thread, errors } = open()
  const [one, other] = [thread(), thread()]
  const seen: string[] = []
  one.bus.subscribe('s', (message) => seen.push(`one ${message}`))
  one.bus.subscribe('s', (message) => seen.push(`again ${message}`))
  other.bus.subscribe('s', (message) => seen.push(`other ${message}`))
  far.subscribe('s', (message) => seen.push(`process ${message}`))
  await pause(20)
  one.bus.publish('s', 1)
  t.ok(await until(() => seen.length === 4))
  far.publish('s', 2)
  t.ok(await until(() => seen.length === 8))
  await pause(20)
  const expected = [1, 2].flatMap((n) => ['one', 'again', 'other', 'process'].map((who) => `${who} ${n}`))
  t.same(seen.sort(), expected.sort())
  t.same(errors, [])
  await Promise.all([one.bus.close(), other.bus.close(), far.close()])
})

t.test('what a thread listened to ends when its process says so, and no other thread loses anything', async (t) => {
  const { far, thread } = open()
  const [one, other] = [thread(), thread()]
  const seen: string[] = []
  one.bus.subscribe('s', () => seen.push('one'))
  other.bus.subscribe('s', () => seen.push('other'))
  await pause(20)
  one.end()
  far.publish('s', 1)
  t.ok(await until(() => seen.length > 0))
  await pause(20)
  t.same(seen, ['other'])
  await Promise.all([one.bus.close(), other.bus.close(), far.close()])
})
