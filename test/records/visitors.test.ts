// The record of a visitor, and what is taken out of it without the rest.

import t from 'tap'
import { mayHaveSurvivor, packHeldVisitor, stateIn, unpackHeldVisitor } from '../../src/records/visitors.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const ROUNDS = sized({ quick: 100, usual: 400, long: 2_000 })

t.test(
  'the state and whether there is a survivor are told as by the whole record, whatever its keys and length',
  async (t) => {
    const seed = testSeed()
    const r = rng(seed)
    const text = (length: number) => Array.from({ length }, () => r.pick(['a', '7', ':', 'é', '漢'])).join('')
    const bytes = (length: number) => Uint8Array.from({ length }, () => r.int(256))
    for (let round = 0; round < ROUNDS; round++) {
      const keys = Array.from({ length: r.int(r.chance(0.1) ? 40 : 7) }, () => text(r.int(r.chance(0.1) ? 400 : 40)))
      const state = bytes(r.int(r.pick([8, 300, 700, 70_000])))
      const parted = [{ to: text(20), upTo: r.int(1e6), issued: [r.int(1e6)], generations: [r.int(9)] }]
      const more = {
        ...(r.chance(0.5) ? { counters: bytes(r.int(300)) } : {}),
        ...(r.chance(0.3) ? { survivor: r.chance(0.5) ? null : text(20) } : {}),
        ...(r.chance(0.2) ? { parted } : {}),
        ...(r.chance(0.1) ? { former: [text(20), text(20)] } : {}),
      }
      const packed = packHeldVisitor(keys, state, more)
      const whole = unpackHeldVisitor(packed)
      const isSame =
        Buffer.compare(stateIn(packed), whole.state) === 0 &&
        Buffer.compare(whole.state, state) === 0 &&
        (whole.survivor === null || mayHaveSurvivor(packed[0] ?? 0)) &&
        whole.former.join() === (more.former ?? []).join()
      if (!isSame) return t.fail(`seed ${seed}, round ${round}: ${keys.length} keys, ${state.length} bytes`)
    }
    t.pass(`seed ${seed}`)
  },
)
