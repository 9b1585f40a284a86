// The fuzz of every endpoint from the document: requests that it allows are served, others are refused by name; no failure
// of ours, no hang, no answer that is not as described.

import fc, { type Arbitrary } from 'fast-check'
import { type Endpoint, endpointsOf } from '../../src/api/reference/openapi.ts'
import { SCOPES } from '../../src/domain/workspace.ts'
import type { Remote } from '../helpers/client.ts'
import { fetchDescription } from '../helpers/described.ts'
import { historyOpen } from '../helpers/server.ts'
import { makeWorkspace } from '../helpers/tenant.ts'
import { type Asked, askDescribed, fill, type Got, UNKNOWN_IDS } from './endpoints.ts'
import { type Drawn, type DrawnFaulty, invalidRequests, validRequests } from './fuzz-requests.ts'
import type { Known } from './schema-arbitrary.ts'

export interface FuzzResult {
  readonly requests: number
  /** How many of the valid ones were answered with 2xx. */
  readonly served: number
  /** One per endpoint at most, with the request that shows it. */
  readonly findings: readonly string[]
}

/**
 * Fields by the endpoint's id that may be refused although the schema allows what is sent, because the rule is about several
 * members, about the state of things, or one that JSON Schema has no words for.
 */
const BEYOND_SCHEMA: Readonly<Record<string, RegExp>> = {
  identify: /^(?:mock\.(?:at|ip)|ip|tag)$/,
  createRule: /^(?:conditions|action|sideEffects)\b/,
  updateRule: /^(?:conditions|action|sideEffects)\b/,
  simulateRules: /^(?:requestId|event|ruleId|conditions)\b/,
  backtestConditions: /^(?:conditions|action)\b/,
  labelEvents: /^requestIds$/,
  listEvents: /^(?:ip|email)$/,
  // One of several is needed, and a list must be there.
  searchVisitors: /^(?:q|ip|email|list)$/,
  listAudit: /^resource$/,
  changeListEntries: /^(?:add|remove)\b/,
  checkListEntries: /^values\b/,
  createKey: /^(?:scopes|origins|expiresAt)\b/,
  createOwnKey: /^(?:scopes|origins|expiresAt)\b/,
  // The form of a registration decides which members it may have.
  createWebhook: /^(?:events|filters|secret|description|enabled)\b/,
  updateWebhook: /^(?:events|filters|description|enabled|status)\b/,
  redeliver: /^(?:since|until)$/,
  redeliverSince: /^(?:since|until)$/,
  testWebhook: /^eventType$/,
  createAlert: /^(?:filters|threshold)\b/,
  updateAlert: /^(?:filters|threshold)\b/,
  splitVisitor: /^requestIds\b/,
}
/** Answers that never end, and those that say nothing of requests. */
const isLeftOut = ({ path }: Endpoint) =>
  /^\/(?:metrics|docs|openapi|postman)/.test(path) || /\/(?:listen|stream)$/.test(path)

const CONDITIONS = fc.constantFrom(
  { operator: 'AND', rules: [{ field: 'signals.vpn.detected', operator: 'equals', value: true }] },
  { operator: 'OR', rules: [{ field: 'ip.country', operator: 'in', value: ['CZ', 'DE'] }] },
  {
    operator: 'AND',
    rules: [
      { field: 'tag.action', operator: 'contains', value: 'log' },
      { operator: 'OR', rules: [{ field: 'scores.suspect', operator: 'gte', value: 90 }] },
    ],
  },
)
const EFFECTS = fc.constantFrom(
  { type: 'log', level: 'warn', message: 'seen {{visitorId}}' },
  { type: 'slack', url: 'https://hooks.slack.example/services/T/B/x' },
)
const ACTION = fc.oneof(
  fc.record(
    { verdict: fc.constantFrom('allow', 'challenge', 'block'), sideEffects: fc.array(EFFECTS, { maxLength: 3 }) },
    { requiredKeys: ['verdict'] },
  ),
  fc.constant({ verdict: 'challenge', challengeType: 'otp' }),
)
/** The parsers of rules know far more than their schemas: valid ones are drawn from here. */
const KNOWN: Known = { Conditions: CONDITIONS, Action: ACTION, SideEffect: EFFECTS }

const AT_ONCE = 4
const MALFORMED = ['x', 'rul_', '%00', 'pv_ü', 'a'.repeat(300), '{}', "'"]

export async function fuzzApi(
  server: Remote,
  { runs, seed, onDone }: { runs: number; seed: number; onDone?: (endpoint: string, requests: number) => void },
): Promise<FuzzResult> {
  const found = await fetchDescription(server.url)
  if (found === null) throw new Error('the server describes nothing')
  await historyOpen(server)
  const description = found
  const { schemas } = description.document.components
  const key = server.keys.testSecret
  const pool = openPool(await seedObjects(server))
  const findings: string[] = []
  let requests = 0
  let served = 0

  const send = async (asked: Asked): Promise<Got> => {
    requests += 1
    const got = await askDescribed(server.url, description, asked)
    if (got.status >= 500 && got.status !== 503) throw new Error(`${got.status} ${got.text}`)
    return got
  }

  const endpoints = [...endpointsOf(description.document)].filter((endpoint) => !isLeftOut(endpoint))
  async function fuzz(endpoint: Endpoint): Promise<void> {
    const { method, operation } = endpoint
    let own = 0
    const isOperator = operation.security.some((one) => 'operatorToken' in one)
    const keeper = endpoint.path.startsWith('/v1/keys') ? await openKeeper(server) : null
    let ownKey = key
    const asked = ({ ids, query, body, raw }: Drawn): Asked => ({
      method,
      path: pathOf(endpoint, ids, query, pool),
      key: isOperator ? server.operatorToken : operation.security.length === 0 ? null : ownKey,
      ...(raw === undefined ? (body === undefined ? {} : { body }) : { raw }),
    })
    const beyond = BEYOND_SCHEMA[operation.operationId]
    async function isServed(drawn: Drawn): Promise<void> {
      own += 1
      if (keeper !== null) ownKey = await keeper()
      const got = await send(asked(drawn))
      if (got.status === 503) throw new Error(`503 ${got.text}`)
      if (got.status === 400 && beyond?.test(got.field ?? '') !== true) {
        throw new Error(`allowed by the document and refused: ${got.text}; narrow the schema, or see BEYOND_SCHEMA`)
      }
      if (got.status < 300) {
        served += 1
        pool.learn(endpoint, got.text)
      }
    }
    async function isRefused({ head, ...drawn }: DrawnFaulty): Promise<void> {
      own += 1
      if (keeper !== null) ownKey = await keeper()
      const got = await send(asked(drawn))
      if (got.status !== 400)
        throw new Error(`not allowed by the document, and answered ${got.status} ${got.text.slice(0, 300)}`)
      if (head === null) {
        if (got.code !== 'invalid_json') throw new Error(`no JSON, and answered ${got.text}`)
      } else if (
        got.code !== 'validation_error' ||
        (headOf(got.field) !== head && beyond?.test(got.field ?? '') !== true)
      ) {
        throw new Error(`${head} is at fault, and answered ${got.text}`)
      }
    }
    const name = `${method} ${endpoint.path}`
    const finding =
      (await firstFault(validRequests(endpoint, schemas, KNOWN), isServed, runs, seed)) ??
      (operation.security.length === 0
        ? null
        : await firstFault(invalidRequests(endpoint, schemas, KNOWN), isRefused, runs, seed))
    if (finding !== null) findings.push(`${name}: ${finding}`)
    const after = await send({ method: 'GET', path: '/v1/meta', key })
    if (after.status !== 200) findings.push(`after ${name} a valid request gets ${after.status}`)
    onDone?.(name, own)
  }
  // Several at once: most of the time is spent waiting.
  const waiting = [...endpoints]
  async function lane(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await fuzz(next)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  return { requests, served, findings }
}

/** Gives a key with every scope, of a workspace of its own: rotating ends it, and then there is another one. */
async function openKeeper(server: Remote): Promise<() => Promise<string>> {
  const { workspace } = await makeWorkspace(server, 'Keys')
  let key = ''
  async function ask(path: string, bearer: string, body?: object): Promise<Response> {
    const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' }
    const method = body === undefined ? 'GET' : 'POST'
    return fetch(server.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  }
  return async () => {
    if (key !== '' && (await ask('/v1/keys', key)).status === 200) return key
    const wanted = { kind: 'secret', environment: 'test', scopes: SCOPES }
    const made = await ask(`/admin/v1/workspaces/${workspace}/keys`, server.operatorToken, wanted)
    if (made.status !== 201) throw new Error(await made.text())
    key = ((await made.json()) as { key: string }).key
    return key
  }
}

const headOf = (field: string | null): string => /^[^.[]*/.exec(field ?? '')?.[0] ?? ''

/** The smallest request that shows a fault; null when there is none. */
async function firstFault<T>(
  requests: Arbitrary<T>,
  check: (drawn: T) => Promise<void>,
  numRuns: number,
  seed: number,
): Promise<string | null> {
  const outcome = await fc.check(fc.asyncProperty(requests, check), {
    numRuns,
    seed,
    interruptAfterTimeLimit: 3_600_000,
  })
  if (!outcome.failed) return null
  const { counterexample, errorInstance } = outcome
  return `${(errorInstance as Error).message} for ${JSON.stringify(counterexample).slice(0, 600)}`
}

type Ids = Readonly<Record<string, string>>

const SPARES_MAX = 200

/** Ids of objects that stay, and of those that may go, by the name of their parameter. */
function openPool(known: Ids) {
  const spares = new Map<string, string[]>()
  return {
    known,
    /** One that exists and may be deleted. */
    spare: (name: string): string => spares.get(name)?.pop() ?? UNKNOWN_IDS[name] ?? 'unknown',
    learn({ method, path }: Endpoint, text: string): void {
      if (method !== 'POST' || text === '') return
      const body = JSON.parse(text) as Record<string, unknown>
      const name = CREATES[path]
      const id = name === undefined ? undefined : (body.id ?? body[name])
      if (name === undefined || typeof id !== 'string') return
      const ids = spares.get(name) ?? []
      if (ids.length < SPARES_MAX) ids.push(id)
      spares.set(name, ids)
    },
  }
}
/** What a POST there makes. */
const CREATES: Readonly<Record<string, string>> = {
  '/v1/identify': 'visitorId',
  '/v1/rules': 'ruleId',
  '/v1/lists': 'listId',
  '/v1/webhooks': 'webhookId',
  '/v1/alerts': 'alertId',
}

function pathOf(
  endpoint: Endpoint,
  ids: Drawn['ids'],
  query: Drawn['query'],
  pool: ReturnType<typeof openPool>,
): string {
  const { path } = endpoint
  const filled: Record<string, string> = {}
  for (const [at, [name, source]] of Object.entries(ids).entries()) {
    if (source === 'malformed') filled[name] = MALFORMED[(path.length + at + query.length) % MALFORMED.length] as string
    else if (source === 'known') filled[name] = pool.known[name] ?? UNKNOWN_IDS[name] ?? 'unknown'
    else if (source === 'spare') filled[name] = pool.spare(name)
  }
  const text = query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
  return `${fill(path, filled)}${text === '' ? '' : `?${text}`}`
}

async function seedObjects({ url, keys, operatorToken }: Remote): Promise<Ids> {
  async function made(path: string, body: unknown, key = keys.testSecret): Promise<Record<string, string>> {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response.status >= 300) throw new Error(`${path}: ${await response.text()}`)
    return (await response.json()) as Record<string, string>
  }
  const conditions = { operator: 'AND', rules: [{ field: 'signals.vpn', operator: 'equals', value: true }] }
  const rule = { name: 'Known', conditions, action: { verdict: 'allow' }, status: 'monitor' }
  const { requestId = '', visitorId = '' } = await made('/v1/identify', { linkedId: 'known' })
  const { id: webhookId = '' } = await made('/v1/webhooks', { url: 'https://shop.example/hooks', events: ['*'] })
  const alert = { name: 'Known', metric: 'block_rate', operator: 'gt', threshold: 0.5 }
  return {
    requestId,
    visitorId,
    webhookId,
    alertId: (await made('/v1/alerts', alert)).id ?? '',
    ruleId: (await made('/v1/rules', rule)).id ?? '',
    listId: (await made('/v1/lists', { name: 'known', type: 'email' })).id ?? '',
    // Not the one whose key is used here: its keys are rotated.
    workspaceId: (await made('/admin/v1/workspaces', { name: 'Known' }, operatorToken)).id ?? '',
  }
}
