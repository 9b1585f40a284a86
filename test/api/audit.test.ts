// The audit log has every write: of keys, plans and settings, entries of lists as counts, what is said of events, exports and erasures.

import { createHash } from 'node:crypto'
import t from 'tap'
import { browserBody, CHROME } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server, identify, get, send, admin } = await openTenant()
const key = server.keys.secret
const operator = { type: 'operator', id: 'operator', label: null }

async function audit(query: string, as = key) {
  const { status, body } = await get(`/v1/audit?${query}`, as)
  t.equal(status, 200)
  return body.data
}

async function visit() {
  const { body } = await identify({ ...browserBody(`a card ${Math.random()}`), userAgent: CHROME }, { key })
  return body as { requestId: string; visitorId: string }
}

t.test('keys, plans and settings are in the log of the environments they change, without a secret', async (t) => {
  const path = `/workspaces/${server.workspace}`
  const { body: made } = await admin('POST', `${path}/keys`, { kind: 'public', environment: 'test', label: 'app' })
  await admin('POST', `${path}/keys/rotate`, { kind: 'public', environment: 'test' })
  const { body: other } = await admin('POST', `${path}/keys`, { kind: 'secret', environment: 'live', label: 'backend' })
  await admin('DELETE', `${path}/keys/${other.id}`)
  await admin('PATCH', path, { plan: 'pro', settings: { clientResult: 'verdict' } })
  await admin('PATCH', path, { plan: 'enterprise' })

  const [rotated, created] = await audit('resource=key', server.keys.testSecret)
  t.match(created, { id: made.id, action: 'create', by: operator, actor: 'operator', before: null })
  t.match(created.after, { label: 'app', kind: 'public', environment: 'test', revokedAt: null })
  t.match(rotated, { action: 'rotate', by: operator })
  t.ok(rotated.after.revoked.includes(made.id))
  const [revoked] = await audit('resource=key')
  t.match(revoked, { id: other.id, action: 'revoke', before: { revokedAt: null }, after: { revokedAt: /Z$/ } })
  for (const as of [key, server.keys.testSecret]) {
    const [back, changed, first] = await audit('resource=workspace', as)
    t.match(back, { id: server.workspace, before: { plan: 'pro' }, after: { plan: 'enterprise' } })
    t.match(changed, { before: { plan: 'enterprise' }, after: { plan: 'pro', settings: { clientResult: 'verdict' } } })
    t.match(first, { action: 'create', before: null, by: operator })
  }
  const text = JSON.stringify([await audit('limit=100'), await audit('limit=100', server.keys.testSecret)])
  t.notMatch(text, /digest|tokenSecret/)
  for (const secret of [made.key, other.key]) t.notOk(text.includes(secret))
})

t.test('entries of a list are counted and not named; who wrote is told by id and label', async (t) => {
  const { body: mine } = await admin('POST', `/workspaces/${server.workspace}/keys`, {
    kind: 'secret',
    environment: 'live',
    label: 'importer',
  })
  const { body: list } = await send('POST', '/v1/lists', { key: mine.key, body: { name: 'mails', type: 'email' } })
  const path = `/v1/lists/${list.id}/entries`
  await send('PATCH', path, { key: mine.key, body: { add: ['a@b.example', 'c@d.example'] } })
  await send('PATCH', path, { key: mine.key, body: { add: ['a@b.example'] } })
  await send('PATCH', path, { key: mine.key, body: { add: ['e@f.example'], remove: ['a@b.example'] } })
  const [second, first, created] = await audit(`resource=list&id=${list.id}`)
  const by = { type: 'key', id: mine.id, label: 'importer' }
  t.match(created, { action: 'create', actor: mine.key.slice(-4), by })
  t.same(first.after, { id: list.id, added: 2, removed: 0, refreshed: 0, source: 'api' })
  t.match(second, { action: 'entries', before: null, after: { added: 1, removed: 1 }, by })
  t.notMatch(JSON.stringify([first, second]), /example/)
})

t.test('what is said of an event, exports and erasures are in the log, and an erased visitor is not', async (t) => {
  const { requestId, visitorId } = await visit()
  const body = { label: 'fraud', linkedId: 'user 7', tag: { note: 'private' } }
  t.equal((await send('PATCH', `/v1/events/${requestId}`, { key, body })).status, 200)
  t.equal((await get(`/v1/visitors/${visitorId}/export`, key)).status, 200)
  const [edit] = await audit(`resource=event&id=${requestId}`)
  t.match(edit, { action: 'update', before: { label: null }, after: { label: 'fraud' }, actor: key.slice(-4) })
  t.same([...edit.after.changed].sort(), ['label', 'linkedId', 'tag'])
  t.notMatch(JSON.stringify(edit), /user 7|private/)
  const about = await audit(`resource=visitor&id=${visitorId}`)
  t.same(
    about.map(({ action }: { action: string }) => action),
    ['export', 'update'],
  )

  const erased = await send('DELETE', `/v1/visitors/${visitorId}`, { key })
  t.equal(erased.status, 200)
  const { erasureId } = erased.body
  const visitorHash = createHash('sha256').update(visitorId).digest('hex')
  t.match(await audit(`resource=erasure&id=${erasureId}`), [{ action: 'erase', after: { erasureId, visitorHash } }])
  t.same(await audit(`resource=visitor&id=${visitorId}`), [])
  t.same(await audit(`resource=event&id=${requestId}`), [])
  const all = JSON.stringify(await audit('limit=100'))
  t.notOk(all.includes(visitorId) || all.includes(requestId))
})
