// What is under way by key: a map in all it tells, whose values are garbage once they are taken.

import t from 'tap'
import { openInFlight } from '../../src/lib/in-flight.ts'
import { built, measurePromoted } from '../helpers/promoted.ts'
import { rng, testSeed } from '../helpers/rng.ts'

t.test('it holds what a map holds, in the order of the keys, whatever comes and goes', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const map = new Map<number, object>()
  const inFlight = openInFlight<number, object>((key) => key)
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
    if (inFlight.size() !== map.size) t.fail(`step ${step}: another size`)
  }
})

/** Bytes that reach the old generation while values of 100 MB come and go, of which 250 are there at a time. */
const PROMOTED = `
  import { openInFlight } from ${built('lib/in-flight.js')}
  function openMap() {
    const map = new Map()
    return { set: (key, value) => map.set(key, value), take: (key) => map.delete(key) }
  }
  const measured = []
  for (const open of [openMap, openInFlight]) {
    const held = open((key) => key)
    const step = (key) => {
      held.set(key, { key, filling: new Array(100).fill(key) })
      held.take(key - 250)
    }
    measured.push(await promotedBy(step, 120_000))
  }
  console.log(JSON.stringify(measured))`

t.test('what was taken is not promoted, as it is where a map of long life lets it go', async (t) => {
  const [byMap, byInFlight] = (await measurePromoted(PROMOTED)) as [number, number]
  t.comment(`promoted by a map ${byMap} bytes, by this ${byInFlight}`)
  t.ok(byInFlight < byMap / 3, `${byInFlight} bytes of ${byMap}`)
})

/** The same of what finds values that are one object: the tables alone. */
const TABLES = `
  import { openInFlight } from ${built('lib/in-flight.js')}
  const value = {}
  const map = new Map()
  const byMap = await promotedBy((key) => {
    map.set(key, value)
    map.delete(key - 250)
  }, 120_000)
  const held = openInFlight((key) => key)
  const byInFlight = await promotedBy((key) => {
    held.set(key, value)
    held.take(key - 250)
  }, 120_000)
  console.log(JSON.stringify([byMap / 120_000, byInFlight / 120_000]))`

t.test('nor is what finds it, which a map allocates in the old generation anew all the time', async (t) => {
  const [byMap, byInFlight] = (await measurePromoted(TABLES)) as [number, number]
  t.comment(`with each value: by a map ${byMap.toFixed(1)} bytes, by this ${byInFlight.toFixed(1)}`)
  t.ok(byInFlight < byMap / 10, `${byInFlight} bytes of ${byMap}`)
})
