// What one promise that is waited for a bounded time comes to: its own result, or null when the time is over.

import t from 'tap'
import { promised } from '../../src/lib/promised.ts'
import { within } from '../../src/lib/within.ts'

/** A clock whose one sleep ends when the test says so, or when it is not wanted any more. */
function heldClock() {
  const slept = promised<void>()
  const sleeps: { readonly ms: number; readonly signal: AbortSignal | undefined }[] = []
  return {
    sleeps,
    pass: slept.resolve,
    sleep(ms: number, signal?: AbortSignal) {
      sleeps.push({ ms, signal })
      signal?.addEventListener('abort', () => slept.resolve(), { once: true })
      return slept.promise
    },
  }
}

t.test('what ends in time is what is resolved with, and nobody sleeps on', async (t) => {
  const clock = heldClock()
  t.equal(await within(clock, 250, Promise.resolve('done')), 'done')
  t.equal(clock.sleeps.length, 1)
  t.equal(clock.sleeps[0]?.ms, 250)
  t.equal(clock.sleeps[0]?.signal?.aborted, true, 'its timer is gone')
})

t.test('what fails in time fails, and nobody sleeps on', async (t) => {
  const clock = heldClock()
  await t.rejects(within(clock, 250, Promise.reject(new Error('broken'))), { message: 'broken' })
  t.equal(clock.sleeps[0]?.signal?.aborted, true, 'its timer is gone')
})

t.test('null when the time is over; a failure behind that is no failure of the process', async (t) => {
  const clock = heldClock()
  let fail = (_: Error): void => undefined
  const work = new Promise<string>((_, reject) => {
    fail = reject
  })
  const waited = within(clock, 250, work)
  clock.pass()
  t.equal(await waited, null)
  const unhandled: unknown[] = []
  const hear = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', hear)
  fail(new Error('too late'))
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', hear)
  t.same(unhandled, [])
})
