// Holds a quiet server to what its clients were told. Each check returns the first broken promise with the history of its
// id, or null; together they are the invariants that no kill, at any moment, may break.

import type { Agent } from 'node:http'
import { readJson } from './http.ts'
import type { Answer, Attempt, Ledger, Violation } from './ledger.ts'
import { evaluate, RULES } from './rules.ts'

export interface Checked {
  readonly agent: Agent
  readonly url: string
  readonly secret: string
  readonly ledger: Ledger
}

interface Named {
  readonly name: string
}

interface Event extends Answer {
  readonly verdict: string | null
  readonly matchedRule: Named | null
  readonly matchedRules: readonly Named[]
  readonly monitorMatches: readonly Named[]
  readonly tag: { readonly number?: number }
  readonly evaluationError?: string
}

type Listed = Pick<Event, 'requestId' | 'visitorId' | 'confidence' | 'verdict' | 'timestamp'>

interface Visitor {
  readonly totalVisits: number
  readonly firstSeenAt: string
  readonly lastSeenAt: string
  readonly linkedAccounts: number
  readonly previousVerdicts: Readonly<Record<string, number>>
}

const PAGE = 100
const READERS = 8

const names = (rules: readonly Named[]): string => rules.map(({ name }) => name).join()
const show = (value: unknown): string => JSON.stringify(value)

/** The first violation that `look` finds among the items, which are looked at a few at a time. */
async function firstOf<T>(
  items: readonly T[],
  look: (item: T) => Promise<Violation | null>,
): Promise<Violation | null> {
  let next = 0
  let found: Violation | null = null
  async function reader(): Promise<void> {
    while (found === null && next < items.length) {
      const violation = await look(items[next++] as T)
      found ??= violation
    }
  }
  await Promise.all(Array.from({ length: READERS }, reader))
  return found
}

/** What differs between the event and what its client was told and may conclude, or null. */
function differs(event: Event, attempt: Attempt): string | null {
  const answer = attempt.answer
  if (answer === null) return 'exists although its client has no answer'
  for (const name of Object.keys(answer) as (keyof Answer)[]) {
    if (event[name] !== answer[name]) return `has ${name} ${event[name]}, its client was told ${answer[name]}`
  }
  if (event.evaluationError !== undefined) return `was not evaluated: ${event.evaluationError}`
  if (event.tag.number !== attempt.number) return `has the tag of attempt ${event.tag.number}`
  const expected = evaluate(attempt.facts)
  const said = [event.verdict, event.matchedRule?.name ?? null, names(event.matchedRules), names(event.monitorMatches)]
  const due = [expected.verdict, expected.deciding, expected.matched.join(), expected.monitored.join()]
  return show(said) === show(due) ? null : `has verdict and matches ${show(said)} instead of ${show(due)}`
}

/** Every event is readable by its id, as its client was told it is. */
export function checkById(to: Checked, attempts: readonly Attempt[]): Promise<Violation | null> {
  return firstOf(attempts, async (attempt) => {
    const id = attempt.answer?.requestId ?? ''
    try {
      const event = await readJson<Event>(to.agent, `${to.url}/v1/events/${id}`, to.secret)
      const what = differs(event, attempt)
      return what === null ? null : { id, what, history: [...attempt.history, show(event)] }
    } catch (error) {
      return { id, what: `cannot be read: ${(error as Error).message}`, history: attempt.history }
    }
  })
}

/** Pages of the list of events, newest first. */
async function* pagesOf(to: Checked, filter: string): AsyncGenerator<Listed[]> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = `limit=${PAGE}${filter}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    type Page = { data: Listed[]; nextCursor: string | null }
    const page: Page = await readJson<Page>(to.agent, `${to.url}/v1/events?${query}`, to.secret)
    yield page.data
    cursor = page.nextCursor
  }
}

/** Every event of the list by id; a violation when an id stands there twice. */
async function readList(to: Checked): Promise<Map<string, Listed> | Violation> {
  const listed = new Map<string, Listed>()
  for await (const page of pagesOf(to, '')) {
    for (const item of page) {
      const id = item.requestId
      if (listed.has(id)) {
        return { id, what: 'stands in the list twice', history: to.ledger.attemptOf(id)?.history ?? [] }
      }
      listed.set(id, item)
    }
  }
  return listed
}

/** An event that no client was told of must be that of the one attempt without a nonce whose outcome is unknown. */
async function claim(to: Checked, id: string): Promise<Violation | null> {
  const event = await readJson<Event>(to.agent, `${to.url}/v1/events/${id}`, to.secret)
  const attempt = to.ledger.attempts[event.tag.number ?? -1]
  if (attempt === undefined || attempt.nonce !== null || attempt.answer !== null) {
    const history = [...(attempt?.history ?? []), show(event)]
    return { id, what: 'is an event no client was told of', history }
  }
  to.ledger.found(attempt, event)
  return null
}

async function checkList(to: Checked, listed: ReadonlyMap<string, Listed>): Promise<Violation | null> {
  for (const [id, item] of listed) {
    if (to.ledger.attemptOf(id) === null) {
      const stranger = await claim(to, id)
      if (stranger !== null) return stranger
    }
    const { answer, facts, history } = to.ledger.attemptOf(id) as Attempt
    const told = answer !== null && item.visitorId === answer.visitorId && item.confidence === answer.confidence
    if (!told || item.timestamp !== answer.timestamp) return { id, what: `is listed as ${show(item)}`, history }
    const { verdict } = evaluate(facts)
    if (item.verdict !== verdict) return { id, what: `has verdict ${item.verdict} instead of ${verdict}`, history }
  }
  for (const { answer, history } of to.ledger.attempts) {
    if (answer !== null && !listed.has(answer.requestId)) {
      return { id: answer.requestId, what: 'was answered and is not in the list', history }
    }
  }
  return null
}

/** A visitor is the sum of its events and was new exactly once. */
function checkVisitors(to: Checked): Promise<Violation | null> {
  const visits = new Map<string, Attempt[]>()
  for (const attempt of to.ledger.attempts) {
    if (attempt.answer === null) continue
    const { visitorId } = attempt.answer
    visits.set(visitorId, [...(visits.get(visitorId) ?? []), attempt])
  }
  return firstOf([...visits], async ([id, attempts]) => {
    const history = attempts.map(({ answer, facts }) => show({ ...answer, ...facts }))
    const news = attempts.filter(({ answer }) => answer?.visitorFound === false).length
    if (news !== 1) return { id, what: `was new ${news} times`, history }
    const times = attempts.map(({ answer }) => answer?.timestamp ?? '').sort()
    const verdicts = { allow: 0, challenge: 0, block: 0 }
    for (const { facts } of attempts) verdicts[evaluate(facts).verdict]++
    const due = {
      totalVisits: attempts.length,
      firstSeenAt: times[0],
      lastSeenAt: times.at(-1),
      linkedAccounts: new Set(attempts.flatMap(({ facts }) => facts.account ?? [])).size,
      previousVerdicts: verdicts,
    }
    const visitor = await readJson<Visitor>(to.agent, `${to.url}/v1/visitors/${id}`, to.secret)
    const { totalVisits, firstSeenAt, lastSeenAt, linkedAccounts, previousVerdicts } = visitor
    const { allow, challenge, block } = previousVerdicts
    const found = {
      totalVisits,
      firstSeenAt,
      lastSeenAt,
      linkedAccounts,
      previousVerdicts: { allow, challenge, block },
    }
    return show(found) === show(due) ? null : { id, what: `is ${show(found)} instead of ${show(due)}`, history }
  })
}

/** The statistics of a rule count the events it matched. */
async function checkRules(to: Checked): Promise<Violation | null> {
  type Rule = { id: string; name: string; stats: { matchCount: number; monitorMatchCount: number } }
  const { data } = await readJson<{ data: Rule[] }>(to.agent, `${to.url}/v1/rules`, to.secret)
  if (data.length !== RULES.length) return { id: 'rules', what: `are ${data.length}`, history: [] }
  for (const { id, name } of data) {
    const due = { matchCount: 0, monitorMatchCount: 0 }
    for (const { answer, facts } of to.ledger.attempts) {
      if (answer === null) continue
      const { matched, monitored } = evaluate(facts)
      if (matched.includes(name)) due.matchCount++
      if (monitored.includes(name)) due.monitorMatchCount++
    }
    const { stats } = await readJson<Rule>(to.agent, `${to.url}/v1/rules/${id}`, to.secret)
    const counted = { matchCount: stats.matchCount, monitorMatchCount: stats.monitorMatchCount }
    if (show(counted) === show(due)) continue
    let listed = 0
    for await (const page of pagesOf(to, `&ruleId=${id}`)) listed += page.length
    return {
      id,
      what: `(${name}) counted ${show(counted)} instead of ${show(due)}`,
      history: [`the list has ${listed} events that it matched`],
    }
  }
  return null
}

/** All invariants over everything that ever happened to this server. */
export async function checkAll(to: Checked): Promise<{ violation: Violation | null; listed: number }> {
  const early = to.ledger.violation()
  if (early !== null) return { violation: early, listed: 0 }
  const listed = await readList(to)
  if (!(listed instanceof Map)) return { violation: listed, listed: 0 }
  const violation = (await checkList(to, listed)) ?? (await checkVisitors(to)) ?? (await checkRules(to))
  return { violation, listed: listed.size }
}
