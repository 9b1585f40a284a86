// How rare values are that no key counts: learned from devices, bounded, and more common among devices that look alike.

import t from 'tap'
import { learnStrangers, learnTraits, newRarity, sharing, TRAITS, traitCode } from '../../src/identity/rarity.ts'

const ASSUMED = 0.5
const COMMON = traitCode(1_234)
const RARE = traitCode(98_765_432_101)
const row = (code: number): number[] => new Array<number>(TRAITS).fill(code)

function devices(n: number, rareEvery: number): number[] {
  const rarity = newRarity()
  for (let i = 0; i < n; i++) learnTraits(rarity, row(i % rareEvery === 0 ? RARE : COMMON))
  return rarity
}

t.test('until devices are seen, another one shares a value as is assumed', async (t) => {
  t.ok(Math.abs(sharing(newRarity(), 0, COMMON, ASSUMED) - ASSUMED) < 1e-9)
})

t.test('what many have says little, what few or nobody have says much', async (t) => {
  const rarity = devices(400, 20)
  for (let i = 0; i < 200; i++) learnStrangers(rarity, i % 10 === 0 ? 0 : -1, -1)
  const asked = (code: number) => sharing(rarity, 3, code, ASSUMED)
  t.ok(asked(COMMON) > 0.85)
  t.ok(asked(RARE) < 0.25)
  t.ok(asked(traitCode(77)) < asked(COMMON))
})

t.test('where devices that look alike agree oftener than all do, even a rare value says less', async (t) => {
  const [free, bound] = [devices(400, 2), devices(400, 2)]
  for (let i = 0; i < 300; i++) {
    learnStrangers(free, i % 2 === 0 ? -1 : 0, -1)
    learnStrangers(bound, -1, -1)
  }
  t.ok(sharing(free, 0, RARE, ASSUMED) < 0.6)
  t.ok(sharing(bound, 0, RARE, ASSUMED) > 0.9)
})

t.test('whatever is sent, counts stay bounded and a share stays within its bounds', async (t) => {
  const rarity = newRarity()
  for (let i = 0; i < 20_000; i++) {
    learnTraits(rarity, row(1 + (i % 60_000)))
    learnStrangers(rarity, 0, -1)
  }
  t.equal(rarity.length, newRarity().length)
  t.ok(rarity.filter((_, i) => i < TRAITS * 17 && i % 17 === 0).every((n) => n <= 2_001))
  for (const code of [1, 7, 19_999]) {
    const share = sharing(rarity, 0, code, ASSUMED)
    t.ok(share >= 0.02 && share <= 0.98)
  }
})

t.test('codes of values are 16 bits, and never that of an unknown one', async (t) => {
  t.equal(traitCode(null), 0)
  for (const value of [0, 1, 0.003, 0.004, 2 ** 32, 2 ** 52 + 1]) {
    const code = traitCode(value)
    t.ok(Number.isInteger(code) && code > 0 && code <= 65_536)
  }
  t.not(traitCode(0.003), traitCode(0.004))
})
