// The provider of an address as evidence: who it is, what a visitor keeps of it, and what it is worth beside the network.

import t from 'tap'
import { ELSEWHERE, SAME_NETWORK, SAME_PROVIDER } from '../../src/identity/agreement.ts'
import { deviceOf } from '../../src/identity/attributes.ts'
import { networkOf } from '../../src/identity/compare.ts'
import { sameProvider } from '../../src/identity/estimates.ts'
import { matchKeys } from '../../src/identity/keys.ts'
import {
  addObservation,
  LATER_PAIRS,
  newMatchStatistics,
  packMatchStatistics,
  unpackMatchStatistics,
  unpackObservation,
} from '../../src/identity/match-statistics.ts'
import { PROVIDERS_MAX, providerOf, providersOf } from '../../src/identity/provider.ts'
import { newVisitor, recordVisit } from '../../src/identity/visitor.ts'
import { packVisitor, unpackVisitor } from '../../src/identity/visitor-record.ts'
import { attributesOf, iphone, openStore, windowsPc } from '../helpers/recognition.ts'

const PC = windowsPc()
const AT_MS = Date.UTC(2026, 10, 20)

t.test('a provider is its AS number where that is known, else the /16 or /32 around the address', async (t) => {
  t.equal(providerOf('203.0.113.9', null), providerOf('203.0.7.1', null))
  t.not(providerOf('203.0.113.9', null), providerOf('203.1.113.9', null))
  t.equal(providerOf('2001:db8:1::1', null), providerOf('2001:db8:ffff::2', null))
  t.not(providerOf('2001:db8:1::1', null), providerOf('2001:db9:1::1', null))
  t.equal(providerOf('203.0.113.9', 64_500), providerOf('2001:db8::1', 64_500))
  t.not(providerOf('203.0.113.9', 64_500), providerOf('203.0.113.9', 64_501))
  const seen = [
    { ip: '203.0.113.9', at: 2 },
    { ip: '198.51.100.1', at: 3 },
    { ip: '203.0.113.7', at: 1 },
  ]
  t.same(providersOf(seen), [providerOf('198.51.100.1', null), providerOf('203.0.113.9', null)], 'the latest first')
})

const facts = (ip: string, atMs: number) => ({
  atMs,
  ip,
  attributes: attributesOf(PC),
  device: deviceOf(attributesOf(PC), PC.body),
  method: 'new' as const,
  token: null,
  generation: 1,
  confidence: 1,
  linkedId: null,
})

t.test(
  'a visitor keeps four providers, the latest first, in its record; records of builds before have none',
  async (t) => {
    const state = newVisitor('pv_00000000000000000000', AT_MS)
    for (let i = 0; i < 9; i++) recordVisit(state, facts(`10.${i}.0.1`, AT_MS + i * 86_400_000))
    const kept = [8, 7, 6, 5].map((i) => providerOf(`10.${i}.0.1`, null))
    t.same(state.providers, kept)
    recordVisit(state, facts('10.99.0.1', AT_MS + 1))
    t.same(state.providers, kept, 'a visit of the past does not change what is the latest')
    t.equal(state.providers.length, PROVIDERS_MAX)
    t.same(unpackVisitor(packVisitor(state)).providers, kept)
    const bytes = packVisitor({ ...state, providers: [] })
    // The last value of the array is an empty list: without it and with one item less the record is as builds before wrote it.
    const before = bytes.slice(0, -1)
    before[2] = (before[2] as number) - 1
    t.same(unpackVisitor(before), { ...state, providers: [] })
  },
)

t.test('another network of a known provider is told from one of a stranger', async (t) => {
  const state = newVisitor('pv_00000000000000000000', AT_MS)
  recordVisit(state, facts('203.0.113.9', AT_MS))
  const [network] = state.networks
  const known = providerOf('203.0.7.1', null)
  t.equal(networkOf(state, 1, 2, known), SAME_PROVIDER)
  t.equal(networkOf(state, 1, network?.subnet ?? 0, known), SAME_NETWORK, 'the nearest counts')
  t.equal(networkOf(state, 1, 2, providerOf('198.51.100.1', null)), ELSEWHERE)
})

t.test('a provider joins what a device has into a key, and what differs between providers differs in it', async (t) => {
  const keyOf = (ip: string) =>
    matchKeys(attributesOf(iphone()), ip, providerOf(ip, null)).find((key) => key[0] === 'f')
  t.type(keyOf('203.0.113.9'), 'string')
  t.equal(keyOf('203.0.113.9'), keyOf('203.0.7.1'))
  t.not(keyOf('203.0.113.9'), keyOf('198.51.100.1'))
})

t.test('how often devices stay with a provider is learned, and counts of builds before are kept', async (t) => {
  const learned = newMatchStatistics()
  const before = sameProvider(learned, 1)
  const lesson = { ...unpackObservation([0, 1]), hours: 30, source: 0 }
  for (let i = 0; i < 400; i++) addObservation(learned, { ...lesson, network: i % 4 === 0 ? ELSEWHERE : SAME_PROVIDER })
  t.ok(sameProvider(learned, 1) > before + 0.2)
  t.equal(sameProvider(learned, 2), before, 'apart by age')
  const packed = packMatchStatistics(learned)
  t.same(unpackMatchStatistics(packed), learned)
  const { providers, twins, rarity, audits } = learned
  const later = [providers, twins, rarity, audits].reduce((sum, list) => sum + list.length, LATER_PAIRS)
  const older = unpackMatchStatistics(packed.slice(0, packed.length - later))
  t.same(older, { ...learned, providers: newMatchStatistics().providers })
  for (let i = 0; i < 40_000; i++) addObservation(learned, { ...lesson, network: ELSEWHERE })
  t.ok(sameProvider(learned, 1) < before, 'and forgotten')
  t.ok((learned.providers[3] ?? 0) <= 20_000)
})

t.test('a device that comes from another network of its provider is likelier the one that is known', async (t) => {
  const posteriorAt = (ip: string) => {
    const store = openStore()
    store.visit(windowsPc(), '203.0.113.9')
    return store.visit(windowsPc({ timezone: 'Europe/Paris' }), ip).recognition.scores[0]?.posterior ?? 0
  }
  t.ok(posteriorAt('203.0.7.1') > posteriorAt('198.51.100.1'))
})
