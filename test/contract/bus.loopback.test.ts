// The bus with a short way home, on either side of it: the common guarantees, and that other processes are still heard.
import t from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { openLoopbackBus } from '../../src/bus/loopback.ts'
import { pause } from '../helpers/processes.ts'
import { busContract, until } from './bus.ts'

async function open(own: string) {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const far = openLocalBus({ onError })
  return { bus: openLoopbackBus({ far, near: openLocalBus({ onError }), own }), far, errors }
}

busContract(t, 'near, the subject of another process', async () => {
  const { bus, far, errors } = await open('reply.elsewhere')
  const close = async () => {
    await bus.close()
    await far.close()
  }
  return { bus: { ...bus, close }, errors }
})
busContract(t, 'near, its own subject', async () => {
  const { bus, far, errors } = await open('s')
  const close = async () => {
    await bus.close()
    await far.close()
  }
  return { bus: { ...bus, close }, errors }
})

t.test(
  'a message to the own subject stays inside and comes once, and those of other processes come as well',
  async (t) => {
    const { bus, far } = await open('reply.here')
    const seen: unknown[] = []
    const left: unknown[] = []
    const stop = bus.subscribe('reply.here', (message) => seen.push(message))
    far.subscribe('reply.here', (message) => left.push(message))
    bus.publish('reply.here', 'from inside')
    await until(() => seen.length > 0)
    await pause(20)
    t.same(seen, ['from inside'])
    t.same(left, [])
    far.publish('reply.here', 'from outside')
    await until(() => seen.length > 1)
    t.same(seen, ['from inside', 'from outside'])
    stop()
    bus.publish('reply.here', 'too late')
    far.publish('reply.here', 'too late')
    await pause(20)
    t.equal(seen.length, 2)
    await bus.close()
    await far.close()
  },
)
