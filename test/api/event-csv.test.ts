// GET /v1/events as text/csv: a whole file of what the list has, by RFC 4180, in which nothing is a formula.

import t from 'tap'
import { openFingerpost } from '../../src/client/client.ts'
import { eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, admin } = await openTenant()
const { keys, url } = server
const key = keys.testSecret

/** Strictly by RFC 4180: records end with CRLF, quotes stand around whole cells. */
function parse(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  for (let at = 0; at < text.length; ) {
    const [found = '', quoted, plain] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))/.exec(text.slice(at)) ?? []
    row.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    at += found.length
    if (text.startsWith('\r\n', at)) {
      rows.push(row)
      row = []
      at += 2
    } else if (text[at] === ',') at += 1
    else throw new Error(`no CSV at ${at}: ${JSON.stringify(text.slice(at, at + 40))}`)
  }
  if (row.length > 0) throw new Error('the last record has no end')
  return rows
}

async function csv(query = '', as: string = key) {
  const headers = { Authorization: `Bearer ${as}`, Accept: 'text/csv' }
  const response = await fetch(`${url}/v1/events${query}`, { headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
async function rowsOf(query = ''): Promise<Record<string, string>[]> {
  const { status, text } = await csv(query)
  if (status !== 200) throw new Error(text)
  const [names = [], ...rows] = parse(text)
  return rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i] ?? ''])))
}

const ACCOUNTS = ['=1+1', '+49', '-5', '@user', 'plain', 'a,b', 'say "hi"', 'two\r\nlines', '\tx', 'ünï💡', "'q", 'a=b']
/** More than are read at once. */
const EVENTS = sized({ quick: 260, usual: 300, long: 1_200 })

t.test('the file has every event of the list in its order, each cell as it is or harmless', async (t) => {
  const visit = async (i: number) => {
    const account = ACCOUNTS[i % ACCOUNTS.length] as string
    const sent = { ...deviceOf(1 + (i % 200)), linkedId: account, email: 'ann@shop.example', tag: { i, t: '=x,"y"' } }
    const { status } = await identify({ ...sent, url: 'https://shop.example/a,b' }, { key })
    if (status !== 200) throw new Error(`identify answered ${status}`)
  }
  for (let from = 0; from < EVENTS; from += 20) {
    await Promise.all(Array.from({ length: Math.min(20, EVENTS - from) }, (_, i) => visit(from + i)))
  }
  const rows = await eventually(
    () => rowsOf(),
    (all) => all.length === EVENTS,
  )
  t.equal(rows.length, EVENTS)
  const listed: Record<string, never>[] = []
  for (let cursor = ''; ; ) {
    const { body } = await get(`/v1/events?fields=full&limit=100${cursor}`, key)
    listed.push(...body.data)
    if (!body.hasMore) break
    cursor = `&cursor=${body.nextCursor}`
  }
  const valueAt = (event: unknown, path: string): unknown =>
    path.split('.').reduce((value: unknown, name) => (value as Record<string, unknown> | null)?.[name], event)
  const wrong: unknown[] = []
  for (const [i, row] of rows.entries()) {
    for (const [path, cell] of Object.entries(row)) {
      const value = valueAt(listed[i], path) ?? ''
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
      const harmless = typeof value === 'string' && /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text
      if (cell !== harmless) wrong.push({ i, path, cell, value })
    }
  }
  t.same(wrong.slice(0, 3), [])
  t.same(
    new Set(rows.map(({ linkedId }) => linkedId)),
    new Set(ACCOUNTS.map((one) => (/^[=+\-@\t]/.test(one) ? `'${one}` : one))),
  )
})

t.test('filters hold, nothing is shown whole, and the answer is a file', async (t) => {
  const { headers, text } = await csv('?linkedId=plain')
  t.equal(headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
  t.equal(headers.get('content-disposition'), 'attachment; filename="events.csv"')
  t.equal(headers.get('cache-control'), 'no-store')
  t.notMatch(text, /ann@shop|198\.\d+\.100\.7/)
  t.equal(parse(text).length, 1 + (await get('/v1/events?linkedId=plain&limit=100', key)).body.data.length)
  t.equal(parse((await csv('?linkedId=nobody')).text).length, 1, 'the names of the columns alone')
  t.equal(parse((await csv('', keys.secret)).text).length, 1, 'of another environment')
  const fingerpost = openFingerpost({ baseUrl: url, key })
  const taken = await new Response(await fingerpost.events.csv({ linkedId: 'plain' })).text()
  t.equal(taken, text, 'by the client')
  const refused = await fingerpost.events.csv({ ip: 'x' }).catch((error: unknown) => error)
  t.match(refused, { status: 400, field: 'ip' })
})

t.test('it is asked for by its type alone, and is no page', async (t) => {
  const typeOf = async (accept: string) =>
    (
      await fetch(`${url}/v1/events?limit=1`, { headers: { Authorization: `Bearer ${key}`, Accept: accept } })
    ).headers.get('content-type')
  for (const accept of ['*/*', 'application/json', 'text/*', 'text/csvx', 'x-text/csv']) {
    t.equal(await typeOf(accept), 'application/json', accept)
  }
  for (const [query, field] of [
    ['?limit=5', 'limit'],
    ['?cursor=AAAA', 'cursor'],
    ['?verdict=x', 'verdict'],
  ] as const) {
    const { status, text } = await csv(query)
    t.equal(status, 400)
    t.same(shapes.errorFaults(400, JSON.parse(text)), [])
    t.equal(JSON.parse(text).error.field, field)
  }
  t.equal((await csv('', keys.testPublic)).status, 403)
})

t.test('a workspace below Pro gets no scores, and every file is in the audit log', async (t) => {
  const plan = (name: string) => admin('PATCH', `/workspaces/${server.workspace}`, { plan: name })
  const namesOf = async () => parse((await csv('?linkedId=plain')).text)[0] ?? []
  const all = await namesOf()
  await plan('starter')
  t.same(
    all.filter((name) => !name.startsWith('scores.')),
    await namesOf(),
  )
  await plan('enterprise')
  const { body } = await get('/v1/audit?resource=event&limit=1', key)
  t.match(body.data[0], { resource: 'event', action: 'export', after: { type: 'csv', filters: ['linkedId'] } })
  t.notMatch(JSON.stringify(body.data[0]), 'plain', 'values of filters are not kept')
})
