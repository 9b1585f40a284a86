// The record of a visitor, and what a glance at it tells.

import t from 'tap'
import { glanceAtVisitor, packHeldVisitor, unpackHeldVisitor } from '../../src/records/visitors.ts'
import { rng, testSeed } from '../helpers/rng.ts'

t.test('a glance tells what the whole record tells, whatever its keys and length', async (t) => {
  const seed = testSeed()
  const r = rng(seed)
  const text = (length: number) => Array.from({ length }, () => r.pick(['a', '7', ':', 'é', '漢'])).join('')
  const bytes = (length: number) => Uint8Array.from({ length }, () => r.int(256))
  for (let round = 0; round < 2_000; round++) {
    const keys = Array.from({ length: r.int(r.chance(0.1) ? 40 : 7) }, () => text(r.int(r.chance(0.1) ? 400 : 40)))
    const state = bytes(r.int(r.pick([8, 300, 700, 70_000])))
    const parted = [{ to: text(20), upTo: r.int(1e6), issued: [r.int(1e6)], generations: [r.int(9)] }]
    const more = {
      ...(r.chance(0.5) ? { counters: bytes(r.int(300)) } : {}),
      ...(r.chance(0.3) ? { survivor: r.chance(0.5) ? null : text(20) } : {}),
      ...(r.chance(0.2) ? { parted } : {}),
    }
    const packed = packHeldVisitor(keys, state, more)
    const whole = unpackHeldVisitor(packed)
    const glance = glanceAtVisitor(packed)
    const isSame =
      Buffer.compare(glance.state, whole.state) === 0 &&
      Buffer.compare(whole.state, state) === 0 &&
      glance.survivor === whole.survivor
    if (!isSame) return t.fail(`seed ${seed}, round ${round}: ${keys.length} keys, ${state.length} bytes`)
  }
  t.pass(`seed ${seed}`)
})
