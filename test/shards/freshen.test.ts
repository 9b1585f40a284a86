// Who reads has the owner of a partition store what it has decided, whichever process that is, believes the log about what that was, and
// is not kept waiting where there is nobody.

import t, { type Test } from 'tap'
import { openAsk } from '../../src/bus/ask.ts'
import type { Bus } from '../../src/bus/bus.ts'
import { openLocalBus } from '../../src/bus/local.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { type FreshenNeeds, openFreshen } from '../../src/shards/freshen.ts'

const PARTITION = 3
const DECIDED = 100
const WAIT_MS_MAX = 1_000
const onError = (error: unknown) => {
  throw error
}

/** A partition of which the log has more than the kv. */
function partition(stored: number | null = 40) {
  const its = { stored, asked: 0, slept: 0 }
  let now = 0
  return {
    its,
    needs: {
      log: { last: async () => DECIDED },
      kv: { position: async () => its.stored },
      clock: {
        monotonic: () => now,
        async sleep(ms: number) {
          now += ms
          its.slept += ms
        },
      },
    },
    /** As its owner answers, who stores what it knows of. */
    owner: (knownTo = DECIDED) => ({
      async freshen() {
        its.asked++
        its.stored = Math.max(its.stored ?? 0, knownTo)
        return true
      },
    }),
  }
}

const NOBODY = { freshen: async () => false }

/** A process on the bus. */
function openProcess(
  t: Test,
  bus: Bus,
  id: string,
  needs: Omit<FreshenNeeds, 'shards' | 'ask'>,
  shards: typeof NOBODY,
) {
  const ask = openAsk({ bus, clock: systemClock, id, onError })
  t.teardown(() => ask.close())
  return openFreshen({ ...needs, shards, ask })
}

t.test('the owner is asked in another process, and in the same', async (t) => {
  const bus = openLocalBus({ onError })
  const those = partition()
  openProcess(t, bus, 'owner', those.needs, those.owner())
  openProcess(t, bus, 'another', those.needs, NOBODY)
  t.equal(await openProcess(t, bus, 'reader', those.needs, NOBODY)(PARTITION, WAIT_MS_MAX), true)
  t.equal(those.its.asked, 1)
  const alone = partition()
  t.equal(await openFreshen({ ...alone.needs, shards: alone.owner(), ask: null })(PARTITION, WAIT_MS_MAX), true)
  t.equal(alone.its.asked, 1)
})

t.test('nobody is asked where everything is stored', async (t) => {
  const { its, needs, owner } = partition(DECIDED)
  t.equal(await openFreshen({ ...needs, shards: owner(), ask: null })(PARTITION, WAIT_MS_MAX), true)
  t.equal(its.asked, 0)
})

t.test('a question that is lost on its way is asked again', async (t) => {
  const bus = openLocalBus({ onError })
  let published = 0
  const losing: Bus = { ...bus, publish: (...message) => (published++ === 0 ? undefined : bus.publish(...message)) }
  const those = partition()
  openProcess(t, bus, 'owner', those.needs, those.owner())
  t.equal(await openProcess(t, losing, 'reader', those.needs, NOBODY)(PARTITION, WAIT_MS_MAX), true)
  t.equal(those.its.asked, 1)
})

t.test('one that does not know yet that it owns nothing any more is not believed', async (t) => {
  const bus = openLocalBus({ onError })
  const those = partition()
  const before = { asked: 0 }
  const frozen = {
    async freshen() {
      before.asked++
      return true
    },
  }
  let isLate = true
  const owner = those.owner()
  const slow = {
    async freshen() {
      if (isLate) {
        isLate = false
        return false
      }
      return owner.freshen()
    },
  }
  openProcess(t, bus, 'before', those.needs, frozen)
  openProcess(t, bus, 'owner', those.needs, slow)
  t.equal(await openProcess(t, bus, 'reader', those.needs, NOBODY)(PARTITION, WAIT_MS_MAX), true)
  t.ok(before.asked > 0, 'it was asked')
  t.equal(those.its.stored, DECIDED)
  t.ok(those.its.slept > 0, 'and not asked again at once')
})

t.test('what is decided after the question is not waited for', async (t) => {
  const { its, needs, owner } = partition()
  let last = DECIDED
  const log = { last: async () => last++ }
  t.equal(await openFreshen({ ...needs, log, shards: owner(), ask: null })(PARTITION, WAIT_MS_MAX), true)
  t.equal(its.asked, 1)
})

t.test('where nobody owns it the reader is told so, with and without other processes', async (t) => {
  const bus = openLocalBus({ onError })
  const those = partition()
  openProcess(t, bus, 'another', those.needs, NOBODY)
  // Without answers time passes by the clock of those who wait for them.
  const needs = { ...those.needs, clock: systemClock }
  t.equal(await openProcess(t, bus, 'reader', needs, NOBODY)(PARTITION, WAIT_MS_MAX), false)
  t.equal(await openFreshen({ ...those.needs, shards: NOBODY, ask: null })(PARTITION, WAIT_MS_MAX), false)
  t.equal(await openFreshen({ ...those.needs, shards: null, ask: null })(PARTITION, WAIT_MS_MAX), false)
})

t.test('a shard that dies while it is asked is not the end of it', async (t) => {
  const { its, needs, owner } = partition()
  let isDead = true
  const shards = {
    freshen() {
      if (!isDead) return owner().freshen()
      isDead = false
      return Promise.reject(new Unavailable('the thread died'))
    },
  }
  t.equal(await openFreshen({ ...needs, shards, ask: null })(PARTITION, WAIT_MS_MAX), true)
  t.equal(its.asked, 1)
})

t.test('a reader waits no longer than it says for an owner that does not come to store anything', async (t) => {
  const { its, needs } = partition()
  const stuck = { freshen: () => new Promise<boolean>(() => undefined) }
  t.equal(await openFreshen({ ...needs, shards: stuck, ask: null })(PARTITION, WAIT_MS_MAX), false)
  t.ok(its.slept >= WAIT_MS_MAX && its.slept < 2 * WAIT_MS_MAX, `${its.slept} ms`)
})

t.test('whoever does not wait has its owner asked all the same', async (t) => {
  const { needs, owner } = partition()
  let asked = 0
  const nobody = { freshen: async () => asked++ < 0 }
  t.equal(await openFreshen({ ...needs, shards: nobody, ask: null })(PARTITION, 0), false)
  t.equal(asked, 1)
  t.equal(await openFreshen({ ...needs, shards: owner(), ask: null })(PARTITION, 0), true)
})

t.test('a partition that has lost its position is not waited for, and stores that do not answer fail', async (t) => {
  const { its, needs } = partition(null)
  t.equal(await openFreshen({ ...needs, shards: NOBODY, ask: null })(PARTITION, WAIT_MS_MAX), false)
  t.equal(its.slept, 0)
  const log = { last: () => Promise.reject(new Unavailable('no servers')) }
  await t.rejects(openFreshen({ ...needs, log, shards: null, ask: null })(PARTITION, WAIT_MS_MAX), Unavailable)
})
