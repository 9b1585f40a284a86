// The REST surface on real backends and a real socket, with an owner that applies and an evaluator that confirms.

import type { Test } from 'tap'
import { keyRoutes } from '../../src/api/admin/keys.ts'
import { openOperator } from '../../src/api/admin/operator.ts'
import { adminRoutes } from '../../src/api/admin/routes.ts'
import { registerRoutes } from '../../src/api/api.ts'
import { openConsole } from '../../src/api/console/console.ts'
import type { Passwords } from '../../src/api/console/passwords.ts'
import type { OidcSettings } from '../../src/api/console/provider.ts'
import { openIdempotency } from '../../src/api/idempotency.ts'
import { type ListsNeeds, listRoutes } from '../../src/api/lists/routes.ts'
import { metaRoutes } from '../../src/api/meta.ts'
import { openPacedSteps } from '../../src/api/paced-steps.ts'
import { callHeaders, openPresent } from '../../src/api/present.ts'
import { openRates } from '../../src/api/rate-limits.ts'
import { openApiDocument } from '../../src/api/reference/document.ts'
import { OUTSIDE_ROWS } from '../../src/api/reference/outside.ts'
import type { ApiRoute } from '../../src/api/routes.ts'
import { ruleHistoryRoutes } from '../../src/api/rules/history.ts'
import { type RulesNeeds, ruleRoutes } from '../../src/api/rules/routes.ts'
import { type WebhooksNeeds, webhookRoutes } from '../../src/api/webhooks/routes.ts'
import { bootstrap } from '../../src/control/bootstrap.ts'
import { openPropagation } from '../../src/control/propagation.ts'
import { openAddressGuard } from '../../src/dispatcher/guard.ts'
import type { Env } from '../../src/domain/event.ts'
import { makeCallId } from '../../src/domain/ids.ts'
import type { KeyKind } from '../../src/domain/workspace.ts'
import { openHttp } from '../../src/http/server.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { openSealer } from '../../src/lib/sealed.ts'
import { openLimits } from '../../src/limits/open.ts'
import { openAuth } from '../../src/records/auth.ts'
import { openKeyDirectory } from '../../src/records/key-directory.ts'
import { openPorts, prepare, random, startEvaluator, startOwner, startSubmit } from './control-plane.ts'
import { type Description, openDescription } from './described.ts'

export const OPERATOR_TOKEN = 'operator-token-of-forty-characters-0001!'
export const PROBE_ADDRESS = '198.51.100.7'

export interface Options {
  /** Default true. */
  readonly evaluator?: boolean
  /** null: the operator's part is off. */
  readonly operatorToken?: string | null
  readonly routes?: readonly ApiRoute[]
  readonly ruleStats?: RulesNeeds['ruleStats']
  readonly maxima?: RulesNeeds['maxima']
  readonly listMaxima?: ListsNeeds['maxima']
  readonly clock?: Clock
  readonly outgoing?: Partial<Omit<WebhooksNeeds, 'kv' | 'submit'>>
  /** Of the console. */
  readonly passwords?: Passwords
  readonly isSecure?: boolean
  readonly oidc?: OidcSettings
  /** What handlers threw that is no ApiError; by default it fails the test. */
  /** `call`: which one failed, of a request. */
  readonly onUnforeseen?: (error: unknown, call?: unknown) => void
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
  readonly body: any
}

export interface Send {
  readonly key?: string | null
  readonly body?: unknown
  /** Sent as they are instead of `body`. */
  readonly raw?: string | Uint8Array
  readonly headers?: Record<string, string>
}

const NO_IPS = { ips: { ipv4: [], ipv6: [], updatedAt: null } }

/** Of an empty deployment, so that nothing leaves the machine. */
function standIn(): Pick<WebhooksNeeds, 'sealer' | 'guard' | 'attempts'> {
  const resolve = async () => []
  const nobody = async () =>
    ({ n: 1, trigger: 'test', startedAt: 0, durationMs: 1, statusCode: 200, error: null }) as const
  return {
    sealer: openSealer(random(32), random),
    guard: openAddressGuard([], resolve),
    attempts: { hasRoom: () => true, deliver: nobody, deliverToSlack: nobody },
  }
}

/** By what the routes say of themselves: most tests open the same ones. */
const descriptions = new Map<string, Description>()

function describe(routes: readonly ApiRoute[]): Description {
  const text = JSON.stringify(routes)
  const known = descriptions.get(text) ?? openDescription(openApiDocument([...OUTSIDE_ROWS, ...routes], '0.0.0-test'))
  descriptions.set(text, known)
  return known
}

const NO_STATS = { matchCount: 0, lastMatchAt: null, monitorMatchCount: 0 }

export async function openServer(t: Test, options: Options = {}) {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  if (options.evaluator ?? true) await startEvaluator(t, ports)
  const propagation = openPropagation({ ...ports, clock: systemClock, observe: () => undefined })
  t.teardown(propagation.close)
  const first = await bootstrap({
    kv: ports.kv,
    submit,
    random,
    sealer: null,
    seeds: (['public', 'secret'] as const).flatMap((kind) => (['live', 'test'] as const).map((env) => ({ kind, env }))),
  })
  await first.finish()
  const clock = options.clock ?? systemClock
  const unforeseen =
    options.onUnforeseen ??
    ((what: unknown) => t.fail(`nothing unforeseen may happen: ${(what as Error).stack ?? JSON.stringify(what)}`))
  const outgoing = { ...standIn(), ...options.outgoing }
  const directory = await openKeyDirectory({ ...ports, clock, sealer: outgoing.sealer, report: unforeseen })
  t.teardown(() => directory.close())
  const auth = openAuth(directory, clock)
  const token = options.operatorToken === undefined ? OPERATOR_TOKEN : options.operatorToken
  const http = await openHttp({
    host: '127.0.0.1',
    port: 0,
    inFlightMax: 100,
    clock: systemClock,
    log: { warn: () => {}, error: unforeseen },
    present: openPresent(unforeseen, () => makeCallId(clock.now(), random)),
    observe: () => {},
    responseHeaders: callHeaders(systemClock, random),
  })
  t.teardown(() => http.close())
  const turns = openPacedSteps(systemClock)
  const routes = [
    ...ruleRoutes({
      ...ports,
      sealer: outgoing.sealer,
      submit,
      awaitPropagation: propagation.awaitPropagation,
      clock: systemClock,
      random,
      ruleStats: options.ruleStats ?? (async () => NO_STATS),
      ...(options.maxima === undefined ? {} : { maxima: options.maxima }),
    }),
    ...ruleHistoryRoutes({
      ...ports,
      submit,
      awaitPropagation: propagation.awaitPropagation,
      clock: systemClock,
      turns,
      ...(options.maxima === undefined ? {} : { maxima: options.maxima }),
    }),
    ...listRoutes({
      ...ports,
      submit,
      clock,
      random,
      ...(options.listMaxima === undefined ? {} : { maxima: options.listMaxima }),
    }),
    ...adminRoutes({ ...ports, submit, directory, clock: systemClock, random, sealer: outgoing.sealer }),
    ...keyRoutes({ ...ports, submit, directory, clock, random }),
    ...webhookRoutes({ ...ports, submit, clock, random, ...NO_IPS, ...outgoing }),
    ...metaRoutes({ version: '0.0.0-test' }, { version: '0', path: '/sdk/0-0.js' }),
    ...(options.routes ?? []),
  ]
  const limits = await openLimits({ backend: 'memory', clock })
  t.teardown(() => limits.close())
  const pages = openConsole({
    ...{ ...ports, limits, clock, random, submit, directory, sealer: outgoing.sealer },
    ...(options.passwords === undefined ? {} : { passwords: options.passwords }),
    ...{ isSecure: options.isSecure ?? false, address: () => base, serviceUrl: () => base },
    ...{ oidc: options.oidc ?? null, logger: { warn: () => undefined } },
  })
  const base = `http://127.0.0.1:${http.port}`
  registerRoutes(http, [...routes, ...pages.routes], {
    auth,
    guard: pages.guard,
    takeRate: openRates(limits),
    turns,
    clock,
    idempotency: openIdempotency({ kv: ports.kv, limits, clock }),
    operator: token === null ? null : openOperator({ token, auth, clock }),
    // Tests speak for clients elsewhere, so that failures of one test do not count for another.
    addressOf: (request) => request.header('x-probe-address') || request.remoteAddress(),
    addressHeaders: ['x-probe-address'],
  })

  const described = describe(routes)
  const keyOf = (kind: KeyKind, env: Env): string => {
    const found = first.generated.find((key) => key.kind === kind && key.env === env)
    if (found === undefined) throw new Error('no such key')
    return found.text
  }

  async function send(method: string, path: string, { key, body, raw, headers = {} }: Send = {}): Promise<Answer> {
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(base + path, {
      method,
      headers: {
        ...(key === null || key === undefined ? {} : { Authorization: `Bearer ${key}` }),
        ...(sent === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent as string }),
    })
    const text = await response.text()
    const faults = described.faults({ method, path, status: response.status, headers: response.headers, text })
    if (faults.length > 0) t.fail(`not as described: ${faults.join('; ')}`)
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  const admin = (method: string, path: string, body?: unknown) =>
    send(method, `/admin/v1${path}`, { key: OPERATOR_TOKEN, ...(body === undefined ? {} : { body }) })

  return {
    ...ports,
    base,
    sealer: outgoing.sealer,
    send,
    admin,
    submit,
    directory,
    secret: keyOf('secret', 'live'),
    publicKey: keyOf('public', 'live'),
    testSecret: keyOf('secret', 'test'),
    testPublic: keyOf('public', 'test'),
  }
}

export const CONDITIONS = {
  operator: 'AND',
  rules: [{ field: 'signals.bot.detected', operator: 'equals', value: true }],
}
export const RULE = { name: 'Bots', conditions: CONDITIONS, action: { verdict: 'block' } }
