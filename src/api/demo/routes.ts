// What the demo page asks behind its link: the rows of the API that read events, and one rule, for the test environment alone. Not part
// of the API: neither documented nor promised.

import { KEYS_PER_WORKSPACE_MAX, newKey } from '../../control/bootstrap.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { isVisitorId, type RandomBytes } from '../../domain/ids.ts'
import { makeKey } from '../../domain/keys.ts'
import { strict, Type } from '../../domain/schema.ts'
import type { ApiKey } from '../../domain/workspace.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { must } from '../../lib/must.ts'
import type { Caller } from '../../records/auth.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import { isSetUp } from '../../records/people.ts'
import { type ApiRoute, open } from '../routes.ts'
import { DEMO_SESSION_MS, type Demo } from './access.ts'

const ENV = 'test'
const ACTOR = 'demo'
const COOKIE = 'fp_demo'
const RULE_NAME = 'Demo: block this browser'
const READS = ['/v1/events/:requestId', '/v1/events/:requestId/identity', '/v1/events', '/v1/rules/:ruleId']

const NO_SESSION = { message: 'The demo is not open here: take a link of `fingerpost demo`.' }
const USED = { message: 'This link was used, or is of an earlier start: `fingerpost demo` prints a new one.' }

export interface DemoNeeds extends Demo {
  /** The rows of the API. */
  readonly rows: readonly ApiRoute[]
  readonly directory: Pick<KeyDirectory, 'workspace' | 'reload'>
  readonly kv: Pick<Kv, 'scan'>
  readonly console: { address(): string; readonly isApart: boolean }
  readonly submit: Submitter['submit']
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
}

const TokenBody = Type.Object({ token: Type.String({ minLength: 1, maxLength: 100 }) }, strict)
const RuleBody = Type.Object({ visitorId: Type.String({ minLength: 1, maxLength: 64 }) }, strict)

export function demoRoutes({
  rows,
  access,
  isSecure,
  directory,
  kv,
  console: pages,
  submit,
  clock,
  random,
  ...demo
}: DemoNeeds): ApiRoute[] {
  let publicKey: { readonly text: string; readonly endsAt: number } | null = null

  /** One that every session shares, and that outlives each of them. */
  async function keyOfPage(): Promise<string> {
    const now = clock.now()
    if (publicKey !== null && publicKey.endsAt - now >= DEMO_SESSION_MS) return publicKey.text
    const text = makeKey('public', ENV, random)
    const endsAt = now + 2 * DEMO_SESSION_MS
    const key = newKey(text, random, { kind: 'public', label: 'Demo page', expiresAt: endsAt })
    const data = { key, keysMax: KEYS_PER_WORKSPACE_MAX }
    accepted(await submit({ type: 'key.create', workspace: demo.workspace, env: ENV, actor: ACTOR, data }))
    await directory.reload()
    publicKey = { text, endsAt }
    return text
  }

  const sessionIn = (cookies: string) => new RegExp(`(?:^|; )${COOKIE}=([0-9A-Za-z]+)`).exec(cookies)?.[1] ?? ''
  const cookieOf = (session: string) =>
    `${COOKIE}=${session}; Path=/demo; Max-Age=${DEMO_SESSION_MS / 1_000}; HttpOnly; SameSite=Strict${isSecure() ? '; Secure' : ''}`

  function callerOf(cookies: string): Caller {
    if (!access.hasSession(sessionIn(cookies))) throw new ApiError('invalid_api_key', NO_SESSION)
    const workspace = must(directory.workspace(demo.workspace), 'the workspace of the demo')
    return { key: keyOf(demo.workspace), workspace, env: ENV }
  }

  const rowOf = (method: string, path: string) =>
    must(
      rows.find((row) => row.method === method && row.path === path),
      `${method} ${path}`,
    )
  const [create, remove] = [rowOf('POST', '/v1/rules'), rowOf('DELETE', '/v1/rules/:ruleId')]

  /** The row under the demo's address, for whoever has a session. */
  function behindLink(row: ApiRoute): ApiRoute {
    const { doc: _, once: __, ...rest } = row
    return {
      ...rest,
      path: row.path.replace('/v1/', '/demo/api/'),
      access: 'none',
      headers: [...(row.headers ?? []), 'cookie'],
      handle: (call) => row.handle({ ...call, caller: callerOf(call.header('cookie')) }),
    }
  }

  return [
    open({
      method: 'GET',
      path: '/',
      // Whoever opens the bare address is to see something. Of a console that is apart nobody hears here.
      async handle() {
        const hasConsole = await isSetUp(kv)
        if (hasConsole && pages.isApart) throw new ApiError('route_not_found')
        return { status: 302, headers: [['Location', hasConsole ? `${pages.address()}/console/` : '/demo/']], body: {} }
      },
    }),
    ...READS.map((path) => behindLink(rowOf('GET', path))),
    behindLink(remove),
    open({
      method: 'POST',
      path: '/demo/api/rules',
      headers: ['cookie'],
      body: RuleBody,
      handle(call) {
        const caller = callerOf(call.header('cookie'))
        const { visitorId } = call.body
        if (!isVisitorId(visitorId)) throw invalid('visitorId', 'This is no visitor id.')
        const leaf = { field: 'visitorId', operator: 'equals', value: visitorId }
        const conditions = { operator: 'AND', rules: [leaf] }
        const body = { name: RULE_NAME, status: 'live', conditions, action: { verdict: 'block' } }
        return create.handle({ ...call, caller, body })
      },
    }),
    open({
      method: 'POST',
      path: '/demo/api/session',
      body: TokenBody,
      async handle({ body }) {
        if (!access.take(body.token)) throw new ApiError('invalid_api_key', USED)
        const key = await keyOfPage()
        return { headers: [['Set-Cookie', cookieOf(access.openSession())]], body: { publicKey: key } }
      },
    }),
    open({
      method: 'GET',
      path: '/demo/api/session',
      headers: ['cookie'],
      // No refusal: a page that asks whether it is open would otherwise fill the browser's console.
      async handle(call) {
        const isOpen = access.hasSession(sessionIn(call.header('cookie')))
        return { body: { publicKey: isOpen ? await keyOfPage() : null } }
      },
    }),
  ]
}

/** What the rows see of whoever has a session. */
const keyOf = (workspace: string): ApiKey => ({
  id: ACTOR,
  workspace,
  env: ENV,
  kind: 'secret',
  digest: '',
  last4: '',
  label: 'Demo page',
  scopes: ['events:read', 'rules:read', 'rules:write'],
  origins: null,
  expiresAt: null,
  createdAt: 0,
  revokedAt: null,
})
