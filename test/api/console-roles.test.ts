// Every route by every role, as a whole table: what a session may ask is written down here once more, and a route that is not in the
// table fails. On a whole server, whose first admin comes from a file.

import { writeFileSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import t from 'tap'
import { endpointsOf, type Operation } from '../../src/api/reference/openapi.ts'
import { type Browser, join, OWNER, openBrowser, PASSWORD } from '../helpers/console.ts'
import { fetchDescription } from '../helpers/described.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import { bodyOf, fill } from './endpoints.ts'

t.teardown(cleanUp)

const ROLES = ['viewer', 'analyst', 'editor', 'admin'] as const
type Least = (typeof ROLES)[number] | 'nobody'

/** The least role of each route; nobody: it is for keys or the operator alone. */
const TABLE: Readonly<Record<string, Least>> = {
  'POST /v1/identify': 'nobody',
  'POST /v1/identify/forget': 'nobody',
  'GET /v1/events/{requestId}': 'viewer',
  'PATCH /v1/events/{requestId}': 'analyst',
  'GET /v1/events/{requestId}/identity': 'viewer',
  'GET /v1/events': 'viewer',
  'POST /v1/events/labels': 'analyst',
  'GET /v1/events/stream': 'viewer',
  'GET /v1/visitors/{visitorId}/events': 'viewer',
  'GET /v1/visitors': 'viewer',
  'GET /v1/visitors/{visitorId}': 'viewer',
  'DELETE /v1/visitors/{visitorId}': 'admin',
  'POST /v1/visitors/{visitorId}/merge': 'analyst',
  'POST /v1/visitors/{visitorId}/split': 'analyst',
  'GET /v1/erasures/{erasureId}': 'admin',
  'GET /v1/visitors/{visitorId}/export': 'analyst',
  'GET /v1/visitors/{visitorId}/export?masked=true': 'viewer',
  'POST /v1/rules': 'editor',
  'GET /v1/rules': 'viewer',
  'GET /v1/rules/fields': 'viewer',
  'GET /v1/rules/{ruleId}': 'viewer',
  'PUT /v1/rules/{ruleId}': 'editor',
  'DELETE /v1/rules/{ruleId}': 'editor',
  'GET /v1/audit': 'viewer',
  'GET /v1/rules/{ruleId}/versions': 'viewer',
  'POST /v1/rules/{ruleId}/rollback': 'editor',
  'POST /v1/rules/simulate': 'viewer',
  'GET /v1/rules/{ruleId}/monitor': 'viewer',
  'POST /v1/rules/{ruleId}/backtest': 'viewer',
  'POST /v1/rules/backtest': 'viewer',
  'POST /v1/lists': 'analyst',
  'GET /v1/lists': 'viewer',
  'GET /v1/lists/{listId}': 'viewer',
  'PUT /v1/lists/{listId}': 'analyst',
  'DELETE /v1/lists/{listId}': 'analyst',
  'PATCH /v1/lists/{listId}/entries': 'analyst',
  'GET /v1/lists/{listId}/entries': 'viewer',
  'POST /v1/lists/{listId}/entries/check': 'viewer',
  'GET /v1/webhooks/listen': 'viewer',
  'POST /v1/webhooks': 'editor',
  'GET /v1/webhooks': 'viewer',
  'GET /v1/webhooks/{webhookId}': 'viewer',
  'PUT /v1/webhooks/{webhookId}': 'editor',
  'DELETE /v1/webhooks/{webhookId}': 'editor',
  'POST /v1/webhooks/{webhookId}/rotate-secret': 'editor',
  'GET /v1/webhooks/{webhookId}/deliveries': 'viewer',
  'GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}': 'viewer',
  'POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver': 'editor',
  'POST /v1/webhooks/{webhookId}/redeliver': 'editor',
  'POST /v1/webhooks/{webhookId}/test': 'editor',
  'POST /v1/alerts': 'editor',
  'GET /v1/alerts': 'viewer',
  'GET /v1/alerts/{alertId}': 'viewer',
  'PUT /v1/alerts/{alertId}': 'editor',
  'DELETE /v1/alerts/{alertId}': 'editor',
  'GET /v1/alerts/{alertId}/incidents': 'viewer',
  'GET /v1/analytics/events': 'viewer',
  'GET /v1/analytics/signals': 'viewer',
  'GET /v1/meta': 'viewer',
  'GET /v1/keys': 'admin',
  'POST /v1/keys': 'admin',
  'POST /v1/keys/rotate': 'admin',
  'DELETE /v1/keys/{keyId}': 'admin',
  'POST /admin/v1/workspaces': 'nobody',
  'GET /admin/v1/workspaces': 'nobody',
  'GET /admin/v1/workspaces/{workspaceId}': 'nobody',
  'PATCH /admin/v1/workspaces/{workspaceId}': 'nobody',
  'POST /admin/v1/workspaces/{workspaceId}/keys': 'nobody',
  'GET /admin/v1/workspaces/{workspaceId}/keys': 'nobody',
  'POST /admin/v1/workspaces/{workspaceId}/keys/rotate': 'nobody',
  'DELETE /admin/v1/workspaces/{workspaceId}/keys/{keyId}': 'nobody',
  'GET /console/api/session': 'viewer',
  'GET /console/api/sessions': 'viewer',
  'DELETE /console/api/sessions/{sessionId}': 'viewer',
  'DELETE /console/api/sessions': 'viewer',
  'PATCH /console/api/me': 'viewer',
  'POST /console/api/password': 'viewer',
  'POST /console/api/totp': 'viewer',
  'POST /console/api/totp/confirm': 'viewer',
  'POST /console/api/totp/remove': 'viewer',
  'GET /console/api/members': 'admin',
  'POST /console/api/members': 'admin',
  'PATCH /console/api/members/{memberId}': 'admin',
  'POST /console/api/members/{memberId}/link': 'admin',
  'DELETE /console/api/members/{memberId}': 'admin',
  // Last, since it ends the session.
  'POST /console/api/sign-out': 'viewer',
}

const setupFile = joinPath(temporaryFolder(), 'setup.json')
writeFileSync(setupFile, JSON.stringify(OWNER))
const server = await startServer({ env: { FINGERPOST_CONSOLE_SETUP_FILE: setupFile } })
const description = await fetchDescription(server.url)
if (description === null) throw new Error('the server describes nothing')
const operations = new Map<string, Operation>(
  [...endpointsOf(description.document)].map(({ method, path, operation }) => [`${method} ${path}`, operation]),
)

const admin = openBrowser(server.url)
const signedIn = await admin.signIn(OWNER.email, PASSWORD)

const browsers: Readonly<Record<(typeof ROLES)[number], Browser>> = {
  viewer: await join(admin, server.url, 'viewer@shop.example', 'viewer'),
  analyst: await join(admin, server.url, 'analyst@shop.example', 'analyst'),
  editor: await join(admin, server.url, 'editor@shop.example', 'editor'),
  admin: await join(admin, server.url, 'second@shop.example', 'admin'),
}

t.test('a file makes the first admin, and no link is printed then', async (t) => {
  t.match(signedIn, { status: 200, body: { person: { role: 'admin' } } })
  t.notMatch(server.logs(), /console\/setup/)
})

t.test('every route of the document is in the table', async (t) => {
  const known = new Set(Object.keys(TABLE).map((name) => name.split('?')[0]))
  const keyed = [...operations].filter(([, { security }]) => security.length > 0).map(([name]) => name)
  t.same(
    keyed.filter((name) => !known.has(name)),
    [],
  )
})

for (const [route, least] of Object.entries(TABLE)) {
  t.test(`${route}: ${least === 'nobody' ? 'nobody' : `${least} and more`}`, async (t) => {
    const [method = '', path = ''] = route.split(' ')
    const operation = operations.get(route.split('?')[0] ?? '')
    const takesBody = operation === undefined ? method !== 'GET' : operation.requestBody !== undefined
    const body = takesBody ? ((operation && bodyOf(operation)) ?? {}) : undefined
    for (const role of ROLES) {
      // Where only the test environment may, that is no question of roles.
      const inTest = { 'X-Fingerpost-Environment': 'test' }
      const isStream = /\/(?:listen|stream)$/.test(path)
      const { status, body: heard } = isStream
        ? await headOf(browsers[role], path, inTest)
        : await browsers[role].ask(method, fill(path), body, inTest)
      const code = heard?.error?.code
      if (least === 'nobody') t.same([status, code], [401, 'invalid_api_key'], role)
      else if (ROLES.indexOf(role) >= ROLES.indexOf(least)) {
        t.notOk(status === 401 && code !== 'sign_in_failed', `${role} may: ${status} ${code}`)
        t.not(status, 403, `${role} may: ${code}`)
      } else {
        t.same([status, code], [403, 'insufficient_permissions'], role)
        t.match(heard?.error?.message, /role/)
      }
    }
  })
}

/** Of an answer that does not end. */
async function headOf(browser: Browser, path: string, headers: Readonly<Record<string, string>>) {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const left = new AbortController()
  const response = await fetch(server.url + path, {
    headers: { ...headers, Cookie: cookie, 'X-Fingerpost-CSRF': browser.csrf },
    signal: left.signal,
  })
  left.abort()
  return { status: response.status, body: null as { error?: { code?: string; message: string } } | null }
}
