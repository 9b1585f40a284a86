// What is under way by key: a map in all it tells, whose values are garbage once they are taken.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { openInFlight } from '../../src/lib/in-flight.ts'
import { rng, testSeed } from '../helpers/rng.ts'

t.test('it holds what a map holds, in the order of the keys, whatever comes and goes', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const map = new Map<number, object>()
  const inFlight = openInFlight<number, object>()
  for (let step = 0; step < 20_000; step++) {
    const key = random.int(200)
    if (random.int(2) === 0) {
      const value = { step }
      map.set(key, value)
      inFlight.set(key, value)
    } else {
      const taken = inFlight.take(key)
      if (taken !== map.get(key)) t.fail(`step ${step}: another value was taken`)
      map.delete(key)
    }
    if (inFlight.get(key) !== map.get(key)) t.fail(`step ${step}: another value`)
    if (step % 500 === 0) t.same([...inFlight.entries()], [...map.entries()], `step ${step}`)
    if (step % 5_000 === 4_999) {
      t.same(inFlight.takeAll(), [...map.values()], `all at step ${step}`)
      map.clear()
    }
    if (inFlight.size !== map.size) t.fail(`step ${step}: another size`)
  }
})

/** Bytes that reach the old generation while values of 100 MB come and go, of which 250 are there at a time. */
const PROMOTED = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { openInFlight } from ${JSON.stringify(new URL('../../src/lib/in-flight.js', import.meta.url).href)}
  function openMap() {
    const map = new Map()
    return { set: (key, value) => map.set(key, value), take: (key) => map.delete(key) }
  }
  const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size
  const measured = [openMap, openInFlight].map((open) => {
    const held = open()
    let key = 0
    const step = () => {
      held.set(key, { key, filling: new Array(100).fill(key) })
      held.take(key - 250)
      key++
    }
    while (key < 2_000) step()
    gc()
    gc()
    const before = old()
    let promoted = 0
    let last = before
    while (key < 120_000) {
      step()
      if (key % 100 !== 0) continue
      // A mark-compact takes back what was promoted before it.
      const now = old()
      promoted += Math.max(0, now - last)
      last = now
    }
    return promoted
  })
  console.log(JSON.stringify(measured))`

t.test('what was taken is not promoted, as it is where a map of long life lets it go', async (t) => {
  const args = ['--expose-gc', '--max-semi-space-size=1', '--input-type=module', '--eval', PROMOTED]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const [byMap, byInFlight] = JSON.parse(stdout) as [number, number]
  t.comment(`promoted by a map ${byMap} bytes, by this ${byInFlight}`)
  t.ok(byInFlight < byMap / 3, `${byInFlight} bytes of ${byMap}`)
})
