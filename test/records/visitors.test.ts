// The record of a visitor, and what is taken out of it without the rest.

import t from 'tap'
import { Unreadable } from '../../src/lib/failures.ts'
import {
  EARLIER_KEYS_MAX,
  earlierKeysWith,
  mayHaveManyKeys,
  mayHaveSurvivor,
  packHeldVisitor,
  readState,
  unpackHeldVisitor,
} from '../../src/records/visitors.ts'
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
        ...(r.chance(0.4) ? { earlierKeys: Array.from({ length: 1 + r.int(40) }, () => `a${r.int(1e9)}`) } : {}),
      }
      const packed = packHeldVisitor(keys, state, more)
      const whole = unpackHeldVisitor(packed)
      const isSame =
        Buffer.compare(
          readState(packed, (bytes, first, behind) => bytes.subarray(first, behind)),
          whole.state,
        ) === 0 &&
        Buffer.compare(whole.state, state) === 0 &&
        (whole.survivor === null || mayHaveSurvivor(packed[0] ?? 0)) &&
        whole.former.join() === (more.former ?? []).join() &&
        whole.keys.join() === keys.join() &&
        whole.earlierKeys.join() === (more.earlierKeys ?? []).join()
      if (!isSame) return t.fail(`seed ${seed}, round ${round}: ${keys.length} keys, ${state.length} bytes`)
    }
    t.pass(`seed ${seed}`)
  },
)

t.test('a record reads the same amid other bytes and whatever keys it was expected to have', async (t) => {
  const seed = testSeed()
  const r = rng(seed)
  const text = () => Array.from({ length: r.int(20) }, () => r.pick(['a', '7', 'é'])).join('')
  for (let round = 0; round < ROUNDS; round++) {
    const keys = Array.from({ length: r.int(7) }, text)
    const expected = Array.from({ length: r.int(9) }, (_, i) => (r.chance(0.5) ? (keys[i] ?? text()) : text()))
    const packed = packHeldVisitor(keys, Uint8Array.of(1, 2, 3), { survivor: text(), earlierKeys: ['a0'] })
    const [before, behind] = [r.int(50), r.int(50)]
    const around = new Uint8Array(before + packed.length + behind).fill(r.int(256))
    around.set(packed, before)
    const held = unpackHeldVisitor(around, before, before + packed.length, expected)
    t.same(held, unpackHeldVisitor(packed), `seed ${seed}, round ${round}`)
    const cut = before + r.int(packed.length)
    t.throws(() => unpackHeldVisitor(around, before, cut), Unreadable, `seed ${seed}, round ${round}: cut short`)
  }
})

t.test(
  'keys of earlier looks are kept once each, and a record that has nearly too many is known by its first bytes',
  async (t) => {
    const key = (letter: string, n: number) => `${letter}${String(n).padStart(12, '0')}`
    let held = unpackHeldVisitor(packHeldVisitor([], new Uint8Array(600)))
    for (let n = 0; n < EARLIER_KEYS_MAX; n++) {
      const keys = [key('a', n % 3), key('b', n), key('c', 7)]
      const earlierKeys = earlierKeysWith(held, keys)
      const packed = packHeldVisitor(keys, held.state, { earlierKeys })
      held = unpackHeldVisitor(packed)
      t.equal(new Set([...held.keys, ...held.earlierKeys]).size, 1 + Math.min(3, n + 1) + n + 1)
      const couldHaveTooMany = earlierKeys.length + keys.length > EARLIER_KEYS_MAX
      t.ok(mayHaveManyKeys(packed.subarray(0, 128)) || !couldHaveTooMany, `${earlierKeys.length}`)
    }
    t.same(held.earlierKeys.slice(-2), [key('a', (EARLIER_KEYS_MAX - 2) % 3), key('b', EARLIER_KEYS_MAX - 2)])
  },
)
