// Facts about a population itself, so that a table of results can be judged: how unique devices look at first sight, how
// much they change between visits, how often they come without a token.

import { subnetOf } from '../../src/domain/ip.ts'
import { componentIn } from './exact-hash.ts'
import type { Truth, Visit } from './population.ts'

const FULL = [
  'userAgentData',
  'platform',
  'languages',
  'timezone',
  'hardwareConcurrency',
  'deviceMemory',
  'screenResolution',
  'devicePixelRatio',
  'colorDepth',
  'touchSupport',
  'canvas',
  'audio',
  'webGlBasics',
  'fonts',
]
/** Attributes compared from visit to visit. */
const COMPARED = {
  version: (visit: Visit) => visit.headers['user-agent'],
  screen: (visit: Visit) => JSON.stringify(componentIn(visit, 'screenResolution')),
  pixelRatio: (visit: Visit) => JSON.stringify(componentIn(visit, 'devicePixelRatio')),
  canvas: (visit: Visit) => JSON.stringify(componentIn(visit, 'canvas')),
  audio: (visit: Visit) => JSON.stringify(componentIn(visit, 'audio')),
  fonts: (visit: Visit) => JSON.stringify(componentIn(visit, 'fonts')),
  timezone: (visit: Visit) => JSON.stringify(componentIn(visit, 'timezone')),
  ip: (visit: Visit) => visit.ip,
  subnet: (visit: Visit) => subnetOf(visit.ip),
} as const

const DRAWN: readonly string[] = ['canvas', 'audio']

/** Browsers that draw something new in every session would all be unique by that alone. */
const drawsNoise = ({ browser, platform, isPrivate }: Truth): boolean =>
  browser === 'firefox' || browser === 'brave' || (isPrivate && (browser === 'safari' || platform === 'ios'))

/** Everything a page can tell of a device, but for what the browser makes up. */
export function profileText(visit: Visit): string {
  const noisy = drawsNoise(visit.truth)
  const made = [...DRAWN, ...(visit.truth.browser === 'brave' ? ['hardwareConcurrency', 'deviceMemory'] : [])]
  const names = noisy ? FULL.filter((name) => !made.includes(name)) : FULL
  return `${visit.headers['user-agent']}|${names.map((name) => JSON.stringify(componentIn(visit, name))).join('|')}`
}

export interface Description {
  readonly visits: number
  readonly devices: number
  readonly tokenlessShare: number
  readonly privateShare: number
  /** Share of first visits whose profile no other first visit shows, by platform, `fleets` and `all`. */
  readonly unicity: Readonly<Record<string, { readonly n: number; readonly share: number }>>
  /** Share of consecutive visits with an equal value; canvas and audio without browsers that draw noise. */
  readonly agreement: Readonly<Record<string, number>>
}

export function createDescriber() {
  const profiles = new Map<string, { n: number; group: string }>()
  /** What was compared at a device's last visit. */
  const last = new Map<number, readonly (string | null)[]>()
  const equal: Record<string, { n: number; same: number }> = {}
  let visits = 0
  let returning = 0
  let tokenless = 0
  let privates = 0

  function readAll(visit: Visit): (string | null)[] {
    const noisy = drawsNoise(visit.truth)
    return Object.entries(COMPARED).map(([name, read]) => (noisy && DRAWN.includes(name) ? null : (read(visit) ?? '')))
  }

  function compare(before: readonly (string | null)[], now: readonly (string | null)[]): void {
    Object.keys(COMPARED).forEach((name, i) => {
      if (before[i] === null || now[i] === null) return
      equal[name] ??= { n: 0, same: 0 }
      equal[name].n++
      if (before[i] === now[i]) equal[name].same++
    })
  }

  return {
    add(visit: Visit) {
      const { truth } = visit
      const now = readAll(visit)
      visits++
      if (truth.isPrivate) privates++
      if (!truth.returning) {
        const text = profileText(visit)
        const known = profiles.get(text) ?? { n: 0, group: truth.fleet ? 'fleets' : truth.platform }
        known.n++
        profiles.set(text, known)
      } else {
        returning++
        if (truth.tokenless) tokenless++
        compare(last.get(truth.device) ?? now, now)
      }
      last.set(truth.device, now)
    },
    result(): Description {
      const groups: Record<string, { n: number; unique: number }> = {}
      for (const { n, group } of profiles.values()) {
        for (const name of [group, 'all']) {
          groups[name] ??= { n: 0, unique: 0 }
          groups[name].n += n
          if (n === 1) groups[name].unique++
        }
      }
      return {
        visits,
        devices: visits - returning,
        tokenlessShare: tokenless / returning,
        privateShare: privates / visits,
        unicity: Object.fromEntries(
          Object.entries(groups).map(([name, { n, unique }]) => [name, { n, share: unique / n }]),
        ),
        agreement: Object.fromEntries(Object.entries(equal).map(([name, { n, same }]) => [name, same / n])),
      }
    },
  }
}
