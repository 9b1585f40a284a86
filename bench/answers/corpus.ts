// The visits of a recorded corpus, each seed the same ones for ever: the population of bench/identity with what else decisions look at,
// accounts, programs, and addresses of which something is known; and rules that ask for all of it.

import { hash32 } from '../../src/domain/ids.ts'
import { regionOf } from '../../src/domain/ip.ts'
import type { ConditionGroup, Leaf, Rule } from '../../src/domain/rule.ts'
import type { AddressFacts } from '../../src/ipintel/addresses.ts'
import { makeRule } from '../../test/helpers/facts.ts'
import { END_MS, openPopulation, type Visit } from '../identity/population.ts'

export interface CorpusWanted {
  readonly visits: number
  readonly seed: number
}

/** What a device makes in so many days, at least. */
const VISITS_PER_DEVICE = 5
const DAYS = 90
/** Of 1,000. */
const WITH_ACCOUNT = 350
const SHARED_ACCOUNT = 200
const PROGRAMS = 15

const shareOf = (text: string): number => hash32(text) % 1_000

export function* corpusVisits({ visits, seed }: CorpusWanted): Generator<Visit, void> {
  const devices = Math.max(20, Math.ceil(visits / VISITS_PER_DEVICE))
  const population = openPopulation({ devices, days: DAYS, seed, perturb: null, half: 'even' })
  let left = visits
  for (const visit of population.visits()) {
    if (left-- === 0) return
    yield { ...visit, body: { ...visit.body, ...extras(visit, seed) } }
  }
  if (left > 0) throw new Error(`the population made ${left} visits too few`)
}

function extras({ truth }: Visit, seed: number) {
  const who = `${seed}/${truth.device}`
  const isShared = shareOf(`${who}/shared`) < SHARED_ACCOUNT
  const account = isShared ? `shared-${truth.device % 3}` : `user-${truth.device}`
  return {
    ...(shareOf(`${who}/account`) < WITH_ACCOUNT ? { linkedId: account, tag: { action: 'login' } } : {}),
    ...(shareOf(`${who}/program`) < PROGRAMS ? { automation: { webdriver: true } } : {}),
  }
}

const PLACES = [
  ['DE', 52.52, 13.4, 'Europe/Berlin'],
  ['FR', 48.85, 2.35, 'Europe/Paris'],
  ['US', 40.71, -74, 'America/New_York'],
  ['BR', -23.55, -46.63, 'America/Sao_Paulo'],
  ['JP', 35.68, 139.69, 'Asia/Tokyo'],
] as const

/** What is known of an address, made up by the address. */
export function factsOf(ip: string): AddressFacts {
  const region = regionOf(ip)
  const [country, lat, lng, timezone] = PLACES[hash32(region) % PLACES.length] as (typeof PLACES)[number]
  const draw = shareOf(`${ip}/list`)
  const dataAt = { geo: END_MS, asn: END_MS, datacenter: END_MS, vpn: END_MS, tor: END_MS }
  return {
    geo: { country, region: null, city: null, lat, lng, timezone },
    network: { asn: 1 + (hash32(`${region}/asn`) % 64_000), name: `NET-${hash32(region) % 500}` },
    hosting: draw < 40 ? 'datacenter_range' : null,
    vpn: draw < 25 ? { provider: 'Example VPN', method: 'vpn_range' } : null,
    relay: null,
    tor: draw >= 990,
    blocklists: draw >= 990 ? ['tor'] : [],
    isPrivate: false,
    dataAt,
  }
}

const all = (...rules: readonly Leaf[]): ConditionGroup => ({ operator: 'AND', rules })
const rule = (id: string, priority: number, conditions: ConditionGroup, more: Partial<Rule> = {}): Rule =>
  makeRule(id, conditions, { priority, ...more })

/** Of every kind of fact that decisions make: signals, scores, velocity, recognition, addresses. */
export const CORPUS_RULES: readonly Rule[] = [
  rule('rul_bot', 90, all({ field: 'signals.bot', operator: 'equals', value: true })),
  rule('rul_tor', 80, all({ field: 'signals.tor', operator: 'equals', value: true })),
  rule('rul_suspect', 70, all({ field: 'scores.suspect', operator: 'gte', value: 60 })),
  rule('rul_accounts', 60, all({ field: 'velocity.linkedId.visitors.24h', operator: 'gte', value: 2 }), {
    action: { verdict: 'challenge', challengeType: 'captcha' },
  }),
  rule('rul_new', 50, all({ field: 'visitorFound', operator: 'equals', value: false }), { status: 'monitor' }),
  rule('rul_elsewhere', 40, all({ field: 'ip.country', operator: 'in', value: ['BR', 'JP'] }), { status: 'monitor' }),
]
