// Who reads has the owner of a partition store what it has decided, whichever process that is, and is not kept waiting where there is none.

import t, { type Test } from 'tap'
import { openAsk } from '../../src/bus/ask.ts'
import type { Bus } from '../../src/bus/bus.ts'
import { openLocalBus } from '../../src/bus/local.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openFreshen } from '../../src/shards/freshen.ts'

const PARTITION = 3
const onError = (error: unknown) => {
  throw error
}

/** A process on the bus; `isStored` answers for the partitions it owns, as its shards do. */
function openProcess(t: Test, bus: Bus, id: string, isStored: (partition: number) => Promise<boolean>) {
  const ask = openAsk({ bus, clock: systemClock, id, onError })
  t.teardown(() => ask.close())
  return openFreshen({ shards: { freshen: isStored }, ask })
}

const owns = async () => true
const ownsNothing = async () => false

/** A process that owns the partition, and the times it was asked to store what it has decided. */
function owner() {
  const asked: number[] = []
  const isStored = async (partition: number) => asked.push(partition) > 0
  return { asked, isStored }
}

t.test('the owner is asked in another process', async (t) => {
  const bus = openLocalBus({ onError })
  const { asked, isStored } = owner()
  openProcess(t, bus, 'owner', isStored)
  const freshen = openProcess(t, bus, 'reader', ownsNothing)
  openProcess(t, bus, 'another', ownsNothing)
  await freshen(PARTITION)
  t.same(asked, [PARTITION])
})

t.test('who owns it asks nobody else', async (t) => {
  const bus = openLocalBus({ onError })
  const other = owner()
  openProcess(t, bus, 'other', other.isStored)
  await openProcess(t, bus, 'owner', owns)(PARTITION)
  t.same(other.asked, [])
})

t.test('a question that is lost on its way is asked again', async (t) => {
  const bus = openLocalBus({ onError })
  let published = 0
  const losing: Bus = { ...bus, publish: (...message) => (published++ === 0 ? undefined : bus.publish(...message)) }
  const { asked, isStored } = owner()
  openProcess(t, bus, 'owner', isStored)
  await openProcess(t, losing, 'reader', ownsNothing)(PARTITION)
  t.same(asked, [PARTITION])
})

t.test('where nobody owns it the reader goes on, with and without other processes', async (t) => {
  const bus = openLocalBus({ onError })
  openProcess(t, bus, 'another', ownsNothing)
  await openProcess(t, bus, 'reader', ownsNothing)(PARTITION)
  await openFreshen({ shards: { freshen: ownsNothing }, ask: null })(PARTITION)
  await openFreshen({ shards: null, ask: null })(PARTITION)
})
