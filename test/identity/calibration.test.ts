// Confidence follows what hidden tokens show: bounded, growing with the chance, near and far apart.

import t from 'tap'
import { auditPlaces, calibrationOf, learnAudit, newAudits, type Seeming } from '../../src/identity/calibration.ts'
import { rng } from '../helpers/rng.ts'

const calibrated = (audits: readonly number[], seeming: Seeming, odds: number): number =>
  calibrationOf(audits, odds)(seeming)

const NONE = { chance: 0, nearby: false }
const CHANCES = Array.from({ length: 199 }, (_, i) => (i + 1) / 200)

/** `audits` of a best visitor that seemed so likely, of which so many of 100 were right, and what strangers seemed. */
function taught(chance: number, nearby: boolean, right: number, stranger = NONE): number[] {
  const audits = newAudits()
  for (let i = 0; i < 100; i++) {
    learnAudit(audits, auditPlaces({ best: { chance, nearby }, isRight: i < right, stranger }))
  }
  return audits
}

t.test('without a hidden token a chance is told as it is, and none is surer than 0.95', async (t) => {
  for (const chance of CHANCES) {
    const told = calibrated(newAudits(), { chance, nearby: true }, 2)
    if (chance <= 0.9) t.equal(told, chance)
    else t.ok(told > 0.9 && told < chance && told < 0.95)
  }
})

t.test('what proved right is told surer, what proved wrong less sure, near and far apart', async (t) => {
  const good = taught(0.6, true, 100)
  t.ok(calibrated(good, { chance: 0.6, nearby: true }, 2) > 0.9)
  t.ok(Math.abs(calibrated(good, { chance: 0.6, nearby: false }, 2) - 0.6) < 0.02)
  t.ok(calibrated(taught(0.965, true, 50), { chance: 0.965, nearby: true }, 2) < 0.6)
})

t.test('the surest looks are told above 0.95 when hidden tokens have shown it', async (t) => {
  const surest = { chance: 0.9999, nearby: true }
  t.ok(calibrated(taught(0.999, true, 1), surest, 9) < 0.96)
  t.ok(calibrated(taught(0.999, true, 100), surest, 9) > 0.98)
})

t.test('what a stranger would have seemed counts by how many visits are those of newcomers', async (t) => {
  const audits = taught(0.85, false, 100, { chance: 0.85, nearby: false })
  const asked = (odds: number) => calibrated(audits, { chance: 0.85, nearby: false }, odds)
  t.ok(asked(9) > asked(1) + 0.2)
  t.ok(Math.abs(asked(1) - 0.5) < 0.1)
})

t.test('confidence grows with the chance whatever was learned, and stays between 0 and 1', async (t) => {
  for (const right of [0, 30, 70, 100]) {
    for (const chance of [0.01, 0.4, 0.75, 0.99]) {
      const audits = taught(chance, true, right, { chance: 0.6, nearby: true })
      const told = CHANCES.map((one) => calibrated(audits, { chance: one, nearby: true }, 2))
      t.ok(told.every((one, i) => one > 0 && one < 1 && one >= (told[i - 1] ?? 0) - 1e-9))
    }
  }
})

t.test('chances that are off by a line between logits are told as they proved, of any such line', async (t) => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = rng(seed)
    const [height, slope] = [random.float() * 4 - 2, 0.5 + random.float()]
    const audits = newAudits()
    const right = (chance: number) => 1 / (1 + Math.exp(-height - slope * Math.log(chance / (1 - chance))))
    for (const chance of [0.05, 0.2, 0.4, 0.6, 0.75, 0.85]) {
      for (let i = 0; i < 400; i++) {
        const isRight = i < 400 * right(chance)
        learnAudit(audits, auditPlaces({ best: { chance, nearby: true }, isRight, stranger: NONE }))
      }
    }
    for (const chance of [0.1, 0.3, 0.5, 0.7, 0.8]) {
      const told = calibrated(audits, { chance, nearby: true }, 1e6)
      t.ok(Math.abs(told - right(chance)) < 0.04, `seed ${seed}: ${chance} is right in ${right(chance)}, told ${told}`)
    }
  }
})

t.test('counts are bounded and old ones fade', async (t) => {
  const audits = newAudits()
  const places = (isRight: boolean) => auditPlaces({ best: { chance: 0.9, nearby: true }, isRight, stranger: NONE })
  for (let i = 0; i < 30_000; i++) learnAudit(audits, places(true))
  t.ok(audits.every((count) => count <= 4_001))
  for (let i = 0; i < 10_000; i++) learnAudit(audits, places(false))
  t.ok(calibrated(audits, { chance: 0.9, nearby: true }, 2) < 0.3)
})
