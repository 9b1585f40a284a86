// The in-process bus: the common guarantees, and its bound.
import t from 'tap'
import { openBus } from '../../src/bus/open.ts'
import { pause } from '../helpers/processes.ts'
import { busContract, until } from './bus.ts'

busContract(t, 'local', async () => {
  const errors: unknown[] = []
  return { bus: await openBus({ backend: 'local', onError: (error) => errors.push(error) }), errors }
})

t.test('a flood loses messages instead of memory, and says so', async (t) => {
  const errors: unknown[] = []
  const bus = await openBus({ backend: 'local', onError: (error) => errors.push(error), queuedMax: 10 })
  const seen: unknown[] = []
  bus.subscribe('s', (message) => seen.push(message))
  for (let count = 0; count < 25; count += 1) bus.publish('s', count)
  await until(() => seen.length >= 10)
  await pause(20)
  t.same(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  t.equal(errors.length, 1)
  await bus.close()
})

t.test('a subscriber receives only what was published after it subscribed', async (t) => {
  const bus = await openBus({ backend: 'local', onError: (error) => t.fail(String(error)) })
  const seen: unknown[] = []
  bus.subscribe('s', () => undefined)
  bus.publish('s', 'early')
  bus.subscribe('s', (message) => seen.push(message))
  bus.publish('s', 'late')
  await until(() => seen.length > 0)
  await pause(20)
  t.same(seen, ['late'])
  await bus.close()
})
