// Which mistakes are made, and by what: false links and missed ones, by family, by how the best candidate compared and by how
// sure the answer was. For development; counts are of visits without a token.

import type { Explanation } from '../../src/domain/event.ts'
import { VALUE_NAMES } from '../../src/identity/profile.ts'
import { hardwareKey } from '../../src/identity/routing.ts'
import type { Answer } from './answer.ts'
import type { Visit } from './population.ts'
import { PLACES, type Place, type Search } from './search.ts'
import { familyOf } from './tally.ts'

/** Parts of the routing key, of which iOS alone has the last two. */
const ROUTED_BY = ['system', 'family', 'GPU', 'model', 'screen', 'language']

/** Parts that are not those of the visit before. */
function routedAnew(before: string, now: string): string {
  const parts = before.split('|')
  const changed = ROUTED_BY.filter((_, i) => parts[i] !== now.split('|')[i])
  return changed.length === 0 ? 'the same' : `another ${changed.join(', ')}`
}

interface Case {
  readonly kind: 'wrong' | 'merged' | 'missed'
  readonly family: string
  readonly why: string
  /** Visits filed under another's id that followed from it. */
  after: number
}

export interface Diagnosis {
  add(visit: Visit, answer: Answer): void
  /** Markdown. */
  text(): string
}

/** Attributes that differ, version when it does, and network, of the best candidate. */
function compared({ comparison }: Explanation): string {
  if (comparison === null) return 'nobody'
  const [codes = '', rest = ''] = comparison.split('|')
  const changed = VALUE_NAMES.filter((_, i) => codes[i] === '!')
  const version = rest[0] === '=' ? [] : [`version${rest[0]}`]
  const network = { a: 'same address', n: 'same network', o: 'elsewhere' }[rest[1] ?? 'o']
  return `${[...changed, ...version].join(' ') || 'nothing differs'}, ${network}`
}

const decade = (share: number): string =>
  share >= 0.9 ? '0.9+' : share >= 0.8 ? '0.8+' : share >= 0.5 ? '0.5+' : '<0.5'

function rank(cases: readonly Case[], keyOf: (one: Case) => string, rowsMax: number): string[] {
  const counts = new Map<string, { n: number; after: number }>()
  for (const one of cases) {
    const count = counts.get(keyOf(one)) ?? { n: 0, after: 0 }
    count.n++
    count.after += one.after
    counts.set(keyOf(one), count)
  }
  return [...counts]
    .sort((a, b) => b[1].n - a[1].n)
    .slice(0, rowsMax)
    .map(([key, { n, after }]) => `| ${n} | ${after} | ${key} |`)
}

export function createDiagnosis(): Diagnosis {
  const owners = new Map<string, number>()
  const owned = new Map<number, Set<string>>()
  const lastKeys = new Map<number, string>()
  const births = new Map<string, Case>()
  const cases: Case[] = []

  /** By family: at how many returning visits without a token the best placed of the device's records was where. */
  const sought = new Map<string, Map<Place, number>>()

  function bestPlace(own: ReadonlySet<string>, search: Search): Place {
    let best: Place = PLACES[0]
    for (const id of own) {
      const place = search.placeOf(id)
      if (PLACES.indexOf(place) > PLACES.indexOf(best)) best = place
    }
    return best
  }

  function countPlace(family: string, place: Place): void {
    const counts = sought.get(family) ?? new Map<Place, number>()
    counts.set(place, (counts.get(place) ?? 0) + 1)
    sought.set(family, counts)
  }

  function soughtTable(): string[] {
    const rows = [...sought].map(([family, counts]) => ({ family, of: PLACES.map((place) => counts.get(place) ?? 0) }))
    const total = (of: readonly number[]) => of.reduce((sum, n) => sum + n, 0)
    return [
      'The best placed record of a device that returned without a token',
      '',
      `| family | ${PLACES.toReversed().join(' | ')} |`,
      `| --- |${' --- |'.repeat(PLACES.length)}`,
      ...rows
        .sort((a, b) => total(b.of) - total(a.of))
        .map(({ family, of }) => `| ${family} | ${of.toReversed().join(' | ')} |`),
      '',
    ]
  }

  function whyMissed(own: ReadonlySet<string>, explanation: Explanation, place: Place, routing: string): string {
    const { candidates } = explanation
    if (own.size === 0) return "own has no record: its visits are another's"
    if (place === 'in another partition' || place === 'under no key') return `own ${place}, routed by ${routing}`
    if (place !== 'read') return `own ${place}`
    const at = candidates.findIndex(({ visitorId }) => own.has(visitorId))
    if (at < 0) return 'own read, not among the best three'
    const posterior = candidates.filter((one) => own.has(one.visitorId)).reduce((sum, one) => sum + one.score, 0)
    const copies = own.size > 1 ? ', has copies' : ''
    return `${at === 0 ? 'own best' : 'other best'} at ${decade(posterior)}${copies}: ${compared(explanation)}`
  }

  return {
    add(visit, { id, explanation, search }) {
      const { truth } = visit
      const key = hardwareKey(visit.body, visit.headers, visit.headers['user-agent'] ?? '')
      const owner = owners.get(id)
      const own = owned.get(truth.device) ?? new Set<string>()
      owned.set(truth.device, own)
      if (owner === undefined) {
        owners.set(id, truth.device)
        own.add(id)
      }
      const family = `${familyOf(truth)}${truth.fleet ? ', fleet' : ''}`
      const link = `${truth.device}/${id}`
      if (owner !== undefined && owner !== truth.device) {
        const birth = births.get(link)
        if (birth !== undefined && !truth.tokenless) birth.after++
        else if (explanation !== undefined) {
          const kind = truth.returning ? 'wrong' : 'merged'
          const best = explanation.candidates[0]?.score ?? 0
          const one: Case = { kind, family, why: `${decade(best)}: ${compared(explanation)}`, after: 0 }
          cases.push(one)
          births.set(link, one)
        }
      }
      if (truth.returning && truth.tokenless && explanation !== undefined && search !== undefined) {
        const isMissed = owner === undefined
        if (isMissed) own.delete(id)
        const place = bestPlace(own, search)
        if (own.size > 0) countPlace(family, place)
        if (isMissed) {
          const routing = routedAnew(lastKeys.get(truth.device) ?? '', key)
          cases.push({ kind: 'missed', family, why: whyMissed(own, explanation, place, routing), after: 0 })
          own.add(id)
        }
      }
      lastKeys.set(truth.device, key)
    },
    text() {
      const part = (title: string, chosen: readonly Case[]) => [
        `${title}: ${chosen.length}, followed by ${chosen.reduce((sum, one) => sum + one.after, 0)} more visits`,
        '',
        '| n | after | family |',
        '| --- | --- | --- |',
        ...rank(chosen, ({ family }) => family, 12),
        '',
        '| n | after | how it looked |',
        '| --- | --- | --- |',
        ...rank(chosen, ({ family, why }) => `${family}: ${why}`, 40),
        '',
      ]
      return [
        ...part(
          'New devices filed under an existing id',
          cases.filter(({ kind }) => kind === 'merged'),
        ),
        ...part(
          'Returning devices filed under another id',
          cases.filter(({ kind }) => kind === 'wrong'),
        ),
        ...part(
          'Returning devices taken for new',
          cases.filter(({ kind }) => kind === 'missed'),
        ),
        ...soughtTable(),
      ].join('\n')
    },
  }
}
