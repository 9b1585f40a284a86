// The simulated population of `bench identity`: reproducible, within its parameters, valid for the API, and honest about
// what its visits know of each other.

import { Agent } from 'node:http'
import t from 'tap'
import { createStorages } from '../../bench/identity/answer.ts'
import { createDescriber } from '../../bench/identity/describe.ts'
import { createDirectDrive } from '../../bench/identity/drive-direct.ts'
import { createHttpDrive, identify } from '../../bench/identity/drive-http.ts'
import { PARAMETERS, type ParameterName, ratesOf } from '../../bench/identity/parameters.ts'
import { END_MS, openPopulation, type PopulationOptions, type Visit } from '../../bench/identity/population.ts'
import { createTally } from '../../bench/identity/tally.ts'
import { openValues } from '../../bench/identity/values.ts'
import { isoTime } from '../../src/events/present.ts'
import { sized } from '../helpers/depth.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant, type Tenant } from '../helpers/tenant.ts'

const SEED = testSeed() % 1_000_000
t.comment(`SEED=${SEED}`)

t.setTimeout(600_000)

const SMALL: PopulationOptions = {
  devices: sized({ usual: 80, long: 150 }),
  days: 60,
  seed: SEED,
  perturb: null,
  half: 'even',
}
const streamOf = (options: PopulationOptions): Visit[] => [...openPopulation(options).visits()]

const DEVICES_SENT = sized({ quick: 20, usual: 40, long: 120 })
/** One device that is taken for another early on may weigh much among few. */
const STABLE_APART_MAX = sized({ usual: 0.15, long: 0.1 })
const MERGES_APART_MAX = sized({ usual: 0.08, long: 0.03 })
const VISITS_PER_KIND = sized({ quick: 1, usual: 1, long: 2 })

t.test('the same seed gives the same stream, another seed or perturbation another one', async (t) => {
  const stream = JSON.stringify(streamOf(SMALL))
  t.equal(JSON.stringify(streamOf(SMALL)), stream)
  t.not(JSON.stringify(streamOf({ ...SMALL, seed: SEED + 1 })), stream)
  t.not(JSON.stringify(streamOf({ ...SMALL, perturb: 7 })), stream)
})

t.test('a population can be walked twice', async (t) => {
  const population = openPopulation({ ...SMALL, devices: 20 })
  t.strictSame([...population.visits()], [...population.visits()])
})

t.test('visits come in order of time, first ones and private ones without a token', async (t) => {
  const stored = new Set<number>()
  const seen = new Set<number>()
  const faults: object[] = []
  let lastMs = 0
  let visits = 0
  for (const { truth, atMs } of streamOf({ ...SMALL, devices: sized({ quick: 80, usual: 150, long: 400 }) })) {
    const { device, returning, tokenless, isPrivate } = truth
    const isInOrder = atMs >= lastMs
    const isToldTruly = returning === seen.has(device)
    const isTokenEarlier = tokenless || (stored.has(device) && !isPrivate)
    if (!isInOrder || !isToldTruly || !isTokenEarlier) faults.push({ atMs, lastMs, ...truth, isTokenEarlier })
    lastMs = atMs
    visits++
    seen.add(device)
    if (!isPrivate) stored.add(device)
  }
  t.same(faults.slice(0, 5), [])
  t.ok(visits > 200 && stored.size > 50, `${visits} visits of ${stored.size} devices`)
})

t.test('storage gives back what was written, but not to or from private windows nor after clearing', async (t) => {
  const [visit] = streamOf({ ...SMALL, devices: 1 }) as [Visit]
  const as = (tokenless: boolean, isPrivate: boolean): Visit => ({
    ...visit,
    truth: { ...visit.truth, tokenless, isPrivate },
  })
  const storages = createStorages()
  t.equal(storages.read(as(false, false)), null)
  storages.write(as(true, false), 'one')
  t.equal(storages.read(as(false, false)), 'one')
  t.equal(storages.read(as(true, true)), null)
  storages.write(as(true, true), 'two')
  t.equal(storages.read(as(false, false)), 'one')
  t.equal(storages.read(as(true, false)), null)
})

t.test('shares of a population are near its parameters', async (t) => {
  const { devices } = openPopulation({ ...SMALL, devices: sized({ quick: 500, usual: 2_000, long: 6_000 }) })
  const rates = ratesOf(null)
  const near = (name: ParameterName, count: number, of: number) => {
    const expected = rates[name]
    const sigma = Math.sqrt((expected * (1 - expected)) / of)
    t.ok(Math.abs(count / of - expected) < 5 * sigma + 0.005, `${name}: ${count} of ${of}, expected ${expected}`)
  }
  near('fleet.share', devices.filter((d) => d.fleet !== null).length, devices.length)
  const own = devices.filter((d) => d.fleet === null)
  near('vpn.share', own.filter((d) => d.habits.vpn).length, own.length)
  near('spoof.share', own.filter((d) => d.habits.spoofs).length, own.length)
  near('storage.clearOnExit', devices.filter((d) => d.habits.clearsOnExit).length, devices.length)
  // Twins copy the platform of another one at home, which spreads the shares without moving them.
  for (const platform of ['windows', 'mac', 'android', 'ios'] as const) {
    near(`platform.${platform}`, own.filter((d) => d.platform === platform).length, own.length)
  }
  const phones = own.filter((d) => d.platform === 'android')
  near('android.samsung', phones.filter((d) => d.browser === 'samsung').length, phones.length)
})

/** The fewer there are, the more chance has its way. */
const MANY = sized({
  usual: { devices: 700, iphonesMax: 0.95, audioMin: 0.9 },
  long: { devices: 1_500, iphonesMax: 0.85, audioMin: 0.95 },
})

t.test('a population is as unique, as steady and as forgetful as the literature has them', async (t) => {
  const describer = createDescriber()
  for (const visit of streamOf({ ...SMALL, devices: MANY.devices, days: 120 })) describer.add(visit)
  const facts = describer.result()
  for (const [group, { n, share }] of Object.entries(facts.unicity)) {
    t.comment(`unique at first sight: ${group} ${(share * 100).toFixed(1)} % of ${n}`)
  }
  t.comment(`equal from visit to visit: ${JSON.stringify(facts.agreement)}`)
  // Hiding in the Crowd found 33.6 % (36 desktop, 19 mobile) among two million, Guess Who 81.8 % (88 and 40); the smaller a
  // population, the more of it is unique.
  const share = (group: string) => facts.unicity[group]?.share ?? Number.NaN
  t.ok(share('all') > 0.5 && share('all') < 0.97, 'all')
  t.ok(share('windows') > share('ios'), 'iPhones are more alike than PCs')
  t.ok(share('ios') < MANY.iphonesMax, 'iPhones')
  t.ok(share('fleets') < 0.5, 'fleets')
  const { version = 0, screen = 0, canvas = 0, audio = 0, fonts = 0, timezone = 0, ip = 0 } = facts.agreement
  // One who comes often with a browser that adds noise moves canvas and audio of so few.
  t.ok(fonts > 0.97 && timezone > 0.95 && screen > 0.9, 'attributes keep')
  t.ok(audio > MANY.audioMin && canvas > 0.85, `pixels keep: ${audio}, ${canvas}`)
  t.ok(version > 0.6 && version < 0.95, 'versions move')
  t.ok(ip > 0.35 && ip < 0.75, 'addresses change')
  t.ok(facts.tokenlessShare > 0.12 && facts.tokenlessShare < 0.3, `without token: ${facts.tokenlessShare}`)
})

t.test('a perturbed table changes every rate by at most a factor of two', async (t) => {
  const rates = ratesOf(SEED)
  for (const name of Object.keys(PARAMETERS) as ParameterName[]) {
    const [value, kind] = PARAMETERS[name]
    const factor = rates[name] / value
    t.ok(factor <= 2 && (factor >= 0.5 || kind === 'chance'), `${name}: ${factor}`)
    if (kind === 'chance') t.ok(rates[name] <= 0.95)
  }
  t.strictSame(ratesOf(SEED), rates)
  t.notSame(ratesOf(SEED + 1), rates)
})

t.test('the halves of the values share only what is common everywhere', async (t) => {
  const [even, odd] = [openValues('even'), openValues('odd')]
  for (const kind of ['windows', 'mac', 'android'] as const) {
    const known = new Set(even.cards[kind].values.map((card) => card.renderer))
    const shared = odd.cards[kind].values.filter((card) => known.has(card.renderer))
    t.ok(shared.length <= 20 && odd.cards[kind].values.length > 20, `${kind}: ${shared.length} cards in both halves`)
  }
})

/** The whole event of a visit, as a server asks for its client. */
async function asServer(server: Tenant, visit: Visit): Promise<{ status: number; states: Record<string, string> }> {
  const response = await fetch(`${server.url}/v1/identify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.keys.testSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...visit.body,
      headers: visit.headers,
      userAgent: visit.headers['user-agent'],
      mock: { at: isoTime(visit.atMs), ip: visit.ip },
    }),
  })
  const { signalDetails = {} } = (await response.json()) as { signalDetails?: Record<string, { state: string }> }
  const states = Object.fromEntries(Object.entries(signalDetails).map(([name, { state }]) => [name, state]))
  return { status: response.status, states }
}

/** Visits as if the last of them were now: a server takes none of long ago. */
function* upToNow(visits: Iterable<Visit>, nowMs: number): Generator<Visit, void> {
  for (const visit of visits) yield { ...visit, atMs: visit.atMs + nowMs - END_MS }
}

t.test('a real server', async (t) => {
  const { server } = await openTenant('population')
  const agent = new Agent({ keepAlive: true })
  const target = { port: server.port, key: server.keys.testPublic }
  // Whoever sends a visit is never behind the server's clock.
  const nowMs = Date.now() - 60_000
  t.teardown(async () => {
    agent.destroy()
    await cleanUp()
  })

  t.test('tells the same of a population over HTTP as the decider does in this process', async (t) => {
    const population = openPopulation({ ...SMALL, devices: DEVICES_SENT, days: 40 })
    const direct = createTally()
    await createDirectDrive(SEED)(upToNow(population.visits(), nowMs), ({ truth }, answer) => direct.add(truth, answer))
    const http = createTally()
    await createHttpDrive(target)(upToNow(population.visits(), nowMs), ({ truth }, answer) => http.add(truth, answer))
    const [a, b] = [direct.result(), http.result()]
    t.strictSame([b.visits, b.returning, b.hard.n], [a.visits, a.returning, a.hard.n])
    // Visits of one day may be decided in another order over HTTP.
    t.ok(Math.abs(a.stable - b.stable) < STABLE_APART_MAX, `stable ids ${a.stable} and ${b.stable}`)
    t.ok(
      Math.abs(a.falseMerges - b.falseMerges) < MERGES_APART_MAX,
      `false merges ${a.falseMerges} and ${b.falseMerges}`,
    )
  })

  t.test('takes the bodies of every browser, and finds genuine ones genuine and private ones private', async (t) => {
    const population = openPopulation({ ...SMALL, seed: SEED + 1, devices: 400, days: 20 })
    const perKind = new Map<string, number>()
    for (const visit of upToNow(population.visits(), nowMs)) {
      const { platform, browser, isPrivate, device } = visit.truth
      const kind = `${platform}/${browser}${isPrivate ? '/private' : ''}`
      const before = perKind.get(kind) ?? 0
      if (before >= VISITS_PER_KIND || population.devices[device]?.habits.spoofs === true) continue
      perKind.set(kind, before + 1)
      const result = await identify(agent, target, visit, null)
      t.match(result, { visitorId: /^pv_/, storageToken: /^st_/ }, kind)
      // What is clear is not listed.
      const { status, states } = await asServer(server, visit)
      t.equal(status, 200, kind)
      t.notOk(states.bot, `${kind} is no bot`)
      t.notOk(states.tampered, `${kind} is not tampered`)
      t.equal(states.incognito === 'detected', isPrivate, `${kind} is private or not`)
    }
    t.ok(perKind.size >= 12, `kinds: ${[...perKind.keys()].join(', ')}`)
  })
})
