// Somebody who would have the matcher learn what is not so: visitors at one address that keep their tokens and show other values
// at every visit, among the visits of a population. They are no devices of it, and nothing is counted of them.

import type { IdentifyBody } from '../../src/domain/identify.ts'
import { type Rng, rng } from '../../test/helpers/rng.ts'
import type { Visit } from './population.ts'

export interface Attack {
  /** Share of the values that differ from visit to visit. */
  readonly changed: number
  readonly seed: number
}

/** Their tokens are kept under numbers that no device has. */
const FIRST_INDEX = 1_000_000
export const isAttack = ({ truth }: Visit): boolean => truth.device >= FIRST_INDEX

const VISITORS = 160
const VISITS = 30
const ADDRESS = '192.0.2.66'
const DAY_MS = 86_400_000
const ZONES = ['Europe/Prague', 'America/Lima', 'Asia/Tokyo', 'Africa/Lagos', 'Australia/Perth', 'Europe/Oslo']

type Components = NonNullable<IdentifyBody['components']>

/** What a value of that component may be instead, without any contradiction that would give it away. */
const OTHERS: Readonly<Record<string, (r: Rng, old: unknown) => unknown>> = {
  hardwareConcurrency: (r) => 2 + 2 * r.int(12),
  deviceMemory: (r) => r.pick([0.5, 1, 2, 4, 8]),
  screenResolution: (r) => [800 + r.int(2_000), 600 + r.int(1_200)],
  devicePixelRatio: (r) => 1 + r.int(8) / 4,
  timezone: (r) => r.pick(ZONES),
  fonts: (r) => Array.from({ length: 6 }, () => `Font ${r.int(1_000)}`),
  audio: (r) => 124 + r.float(),
  canvas: (r, old) => ({ ...(old as object), geometry: `g${r.int(1e9)}`, text: `t${r.int(1e9)}` }),
}

function disguised(components: Components, changed: number, r: Rng): Components {
  const shown: Record<string, Components[string]> = { ...components }
  for (const [name, other] of Object.entries(OTHERS)) {
    const one = components[name]
    if (one !== undefined && r.chance(changed)) shown[name] = { ...one, value: other(r, one.value) }
  }
  return shown
}

/** The visits of the population with those of the attack among them, in order of time. */
export function* attacked(visits: () => Generator<Visit, void>, { changed, seed }: Attack): Generator<Visit, void> {
  const r = rng(seed)
  const looks: Visit[] = []
  const seen = new Set<number>()
  let [startMs, endMs] = [0, 0]
  for (const visit of visits()) {
    if (startMs === 0) startMs = visit.atMs
    endMs = visit.atMs
    if (!seen.has(visit.truth.device) && !visit.truth.tokenless) looks.push(visit)
    seen.add(visit.truth.device)
  }
  const usual = looks.length > 0 ? looks : [...visits()]
  const gapMs = (endMs - startMs) / (VISITS + 1)
  const planned: Visit[] = []
  for (let i = 0; i < VISITORS; i++) {
    const look = r.pick(usual)
    // Of no device: a look-alike would mislead by itself.
    const own = disguised(look.body.components ?? {}, 1, r)
    const beginsMs = startMs + r.float() * Math.min(gapMs, 10 * DAY_MS)
    for (let visit = 0; visit < VISITS; visit++) {
      const truth = {
        ...look.truth,
        device: FIRST_INDEX + i,
        returning: visit > 0,
        tokenless: visit === 0,
        isPrivate: false,
      }
      const components = visit === 0 ? own : disguised(own, changed, r)
      const atMs = Math.round(beginsMs + (visit + r.float() / 2) * gapMs)
      planned.push({ ...look, body: { ...look.body, components }, ip: ADDRESS, atMs, truth })
    }
  }
  planned.sort((a, b) => a.atMs - b.atMs)
  let next = 0
  for (const visit of visits()) {
    for (; next < planned.length && (planned[next] as Visit).atMs <= visit.atMs; next++) yield planned[next] as Visit
    yield visit
  }
}
