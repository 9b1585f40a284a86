// `fingerpost seed --demo`: fills the test environment of a running server through its public API, as a shop's back end would. Times lie
// in the past and some signals about addresses are set because test keys may (`mock`); all else the service finds by itself.

import { FingerpostError } from '../client/call.ts'
import { type Fingerpost, type IdentifiedEvent, openFingerpost } from '../client/client.ts'
import { base62, type RandomBytes } from '../domain/ids.ts'
import type { Clock } from '../lib/clock.ts'
import { Told } from '../lib/failures.ts'
import { DEMO_ALERT, DEMO_LISTS, DEMO_REGULARS, DEMO_RULES } from './demo-rules.ts'
import { type DemoVisit, demoVisits } from './demo-visits.ts'
import type { Progress } from './progress.ts'

export interface ShowNeeds {
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>
  readonly random: RandomBytes
  readonly progress: Progress
}

export interface ShowWanted {
  /** Where the service is. */
  readonly service: string
  /** A secret key of a test environment. */
  readonly key: string
}

export interface Shown {
  readonly visits: number
  readonly visitors: number
  readonly verdicts: Readonly<Record<string, number>>
  readonly labelled: number
  /** Rules, lists and alerts that were not there before. */
  readonly created: number
  readonly seconds: number
}

/** The service does not take it: the sentence says what to do. */
export class CannotShow extends Told {
  override readonly name = 'CannotShow'
}

const SEED = '1'
const TOGETHER_MAX = 16
const NONCE_CHARS = 32
const REGULARS = 20
const LABELLED_MAX = 1_000
/** The end of the visits lies a little in the past: clocks of two machines differ. */
const BEHIND_MS = 2_000

/** Throws CannotShow. Twice makes no second rule, list or alert; the visitors of before come again. */
export async function showDemo(needs: ShowNeeds, wanted: ShowWanted): Promise<Shown> {
  const { service, key } = wanted
  try {
    return await fill(needs, openFingerpost({ baseUrl: service, key, sleep: (ms) => needs.clock.sleep(ms) }))
  } catch (error) {
    if (!(error instanceof FingerpostError)) throw error
    throw new CannotShow(problemOf(service, error), { cause: error })
  }
}

function problemOf(service: string, { status, message, code }: FingerpostError): string {
  if (status === 0) {
    return `no server answers at ${service}: start it with fingerpost start, or set FINGERPOST_URL to where it is`
  }
  if (status === 401) {
    return `${service} does not know the key: set FINGERPOST_TEST_SECRET_KEY to the secret test key that its first start printed`
  }
  return `${service} answers ${status} ${code}: ${message}`
}

async function fill(needs: ShowNeeds, fingerpost: Fingerpost): Promise<Shown> {
  const { clock, progress } = needs
  const startedAt = clock.monotonic()
  progress.begin('rules and lists', null)
  const created = await configure(fingerpost)
  progress.end(created === 0 ? 'they were there' : `${created} made`)

  const events = await visit(needs, fingerpost, demoVisits(SEED, clock.now() - BEHIND_MS))
  const labelled = await label(fingerpost, events)
  await listRegulars(fingerpost, events)
  const verdicts: Record<string, number> = {}
  for (const { event } of events) verdicts[event.verdict ?? 'none'] = (verdicts[event.verdict ?? 'none'] ?? 0) + 1
  const visitors = new Set(events.map(({ event }) => event.visitorId)).size
  const seconds = (clock.monotonic() - startedAt) / 1_000
  return { visits: events.length, visitors, verdicts, labelled, created, seconds }
}

/** How many were not there. Each is asked for by its name and made under a key of its own. */
async function configure(fingerpost: Fingerpost): Promise<number> {
  const [lists, rules, alerts] = [
    await namesOf(fingerpost.lists.all()),
    await namesOf(fingerpost.rules.all()),
    await namesOf(fingerpost.alerts.all()),
  ]
  let created = 0
  for (const { list, entries } of [...DEMO_LISTS, { list: DEMO_REGULARS, entries: [] }]) {
    if (lists.has(list.name)) continue
    const { id } = await fingerpost.lists.create(list, { idempotencyKey: keyOf('list', list.name) })
    if (entries.length > 0) await fingerpost.lists.changeEntries(id, { add: entries })
    created++
  }
  for (const rule of DEMO_RULES) {
    if (rules.has(rule.name)) continue
    await fingerpost.rules.create(rule, { idempotencyKey: keyOf('rule', rule.name) })
    created++
  }
  if (!alerts.has(DEMO_ALERT.name)) {
    await fingerpost.alerts.create(DEMO_ALERT, { idempotencyKey: keyOf('alert', DEMO_ALERT.name) })
    created++
  }
  return created
}

const keyOf = (kind: string, name: string): string => `demo/${kind}/${name}`

async function namesOf(
  all: AsyncIterable<{ readonly name: string; readonly id: string }>,
): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  for await (const { name, id } of all) names.set(name, id)
  return names
}

interface Visited {
  readonly visit: DemoVisit
  readonly event: IdentifiedEvent
}

/** In the order of time; those of one browser follow one another, each with what the one before was given to keep. */
async function visit(
  { random, progress }: ShowNeeds,
  fingerpost: Fingerpost,
  visits: readonly DemoVisit[],
): Promise<Visited[]> {
  const kept = new Map<number, string>()
  const done: Visited[] = []
  progress.begin('visits', visits.length)
  for (let from = 0; from < visits.length; ) {
    const together = nextOnes(visits, from)
    from += together.length
    const events = await Promise.all(
      together.map(({ body, browser, keeps }) =>
        fingerpost.identify({
          ...body,
          nonce: base62(NONCE_CHARS, random),
          storageToken: keeps ? (kept.get(browser) ?? null) : null,
        }),
      ),
    )
    for (const [at, event] of events.entries()) {
      const one = together[at] as DemoVisit
      if (one.keeps && event.storageToken !== null) kept.set(one.browser, event.storageToken)
      done.push({ visit: one, event })
    }
    progress.advance(together.length)
  }
  progress.end(`${done.length} identified`)
  return done
}

/** Up to the first browser that comes again. */
function nextOnes(visits: readonly DemoVisit[], from: number): DemoVisit[] {
  const together: DemoVisit[] = []
  const browsers = new Set<number>()
  for (const one of visits.slice(from, from + TOGETHER_MAX)) {
    if (browsers.has(one.browser)) break
    browsers.add(one.browser)
    together.push(one)
  }
  return together
}

/** What somebody would have found out since: the rest waits for Review. */
async function label(fingerpost: Fingerpost, events: readonly Visited[]): Promise<number> {
  const of = (kinds: readonly DemoVisit['kind'][], every: number) =>
    events
      .filter(({ visit }) => kinds.includes(visit.kind))
      .filter((_, at) => at % every === 0)
      .map(({ event }) => event.requestId)
      .slice(0, LABELLED_MAX)
  const [fraud, legitimate] = [of(['abuser', 'bot', 'thief'], 3), of(['customer'], 9)]
  await fingerpost.events.label('fraud', { requestIds: fraud })
  await fingerpost.events.label('legitimate', { requestIds: legitimate })
  return fraud.length + legitimate.length
}

async function listRegulars(fingerpost: Fingerpost, events: readonly Visited[]): Promise<void> {
  const counts = new Map<string, number>()
  for (const { visit, event } of events) {
    if (visit.kind === 'customer') counts.set(event.visitorId, (counts.get(event.visitorId) ?? 0) + 1)
  }
  const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, REGULARS)
  const id = (await namesOf(fingerpost.lists.all({ type: 'visitor' }))).get(DEMO_REGULARS.name)
  // Whoever deleted it within a day does not get it again.
  if (id === undefined) return
  await fingerpost.lists.changeEntries(id, {
    add: most.map(([value, count]) => ({ value, reason: `${count} visits` })),
  })
}
