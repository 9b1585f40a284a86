// Waits for records: each ends by what comes first of its kind, its time or its signal, and none is forgotten by the timer they share.

import t from 'tap'
import { openReaders } from '../../src/log/readers.ts'
import { rng } from '../helpers/rng.ts'

/** A clock that stands until it is moved. */
function standingClock() {
  let nowMs = 0
  const sleepers = new Set<{ readonly untilMs: number; readonly end: () => void }>()
  return {
    monotonic: () => nowMs,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const sleeper = { untilMs: nowMs + ms, end: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          resolve()
        })
      }),
    sleeping: () => sleepers.size,
    async moveTo(ms: number) {
      for (;;) {
        const next = Math.min(ms, ...[...sleepers].map(({ untilMs }) => untilMs))
        nowMs = Math.max(nowMs, next)
        for (const sleeper of sleepers) {
          if (sleeper.untilMs > nowMs) continue
          sleepers.delete(sleeper)
          sleeper.end()
        }
        for (let i = 0; i < 5; i++) await null
        if (nowMs >= ms) return
      }
    },
  }
}

t.test(
  'a wait ends when it is woken, when its time is over or when its signal aborts, whatever comes first',
  async (t) => {
    const seed = 41
    const random = rng(seed)
    const clock = standingClock()
    const readers = openReaders(clock)
    const signals = Array.from({ length: 4 }, () => new AbortController())
    const waits: { readonly dueMs: number; readonly submitted: boolean; readonly signal: number; endedMs: number }[] =
      []
    const isOpen = (wait: { readonly endedMs: number }) => wait.endedMs < 0

    for (let step = 0; step < 500; step++) {
      const what = random.int(10)
      if (what < 5) {
        const ms = 1 + random.int(200)
        const signal = random.int(signals.length + 1) - 1
        const wait = { dueMs: clock.monotonic() + ms, submitted: random.int(2) === 1, signal, endedMs: -1 }
        waits.push(wait)
        void readers.wait({ submitted: wait.submitted }, ms, signals[signal]?.signal).then(() => {
          wait.endedMs = clock.monotonic()
        })
      } else if (what < 7) {
        const submitted = random.int(2) === 1
        const woken = waits.filter((wait) => isOpen(wait) && wait.submitted === submitted)
        readers.wake(submitted)
        await null
        t.ok(!woken.some(isOpen), `seed ${seed}, step ${step}: all of a kind are woken`)
      } else if (what === 7) {
        const aborted = random.int(signals.length)
        const left = waits.filter((wait) => isOpen(wait) && wait.signal === aborted)
        signals[aborted]?.abort()
        signals[aborted] = new AbortController()
        await null
        t.ok(!left.some(isOpen), `seed ${seed}, step ${step}: a signal ends its waits`)
        for (const wait of waits) if (wait.signal === aborted) Object.assign(wait, { signal: -1 })
      } else await clock.moveTo(clock.monotonic() + random.int(60))
      const late = waits.filter((wait) => isOpen(wait) && wait.dueMs <= clock.monotonic())
      t.equal(late.length, 0, `seed ${seed}, step ${step}: nobody waits longer than it said`)
      t.ok(clock.sleeping() <= 1, `seed ${seed}, step ${step}: one timer at most`)
    }
    const early = waits.filter(({ endedMs, dueMs }) => endedMs > dueMs)
    t.same(early, [], 'nobody was told after its time')
    readers.wakeAll()
    await null
    t.notOk(waits.some(isOpen))
    t.equal(clock.sleeping(), 0, 'and no timer is left')
  },
)

t.test('a signal that has aborted lets nobody wait', async (t) => {
  const clock = standingClock()
  await openReaders(clock).wait({}, 1_000, AbortSignal.abort())
  t.equal(clock.sleeping(), 0)
})
