// Lists as a client sees them: the contract's endpoints over HTTP, on real backends with an owner that applies.

import t, { type Test } from 'tap'
import { eventually } from '../helpers/client.ts'
import { type Options, openServer } from '../helpers/rest-surface.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const LIST_ID = /^lst_[0-9A-Za-z]{20}$/
const PV = (n: number | string): string => `pv_${String(n).padStart(20, '0')}`

async function open(t: Test, options: Options = {}) {
  const server = await openServer(t, options)
  const { send, secret: key } = server
  const make = async (name: string, type: string, more: Record<string, unknown> = {}) => {
    const made = await send('POST', '/v1/lists', { key, body: { name, type, ...more } })
    t.equal(made.status, 201, JSON.stringify(made.body))
    return made.body
  }
  const patch = (id: string, body: unknown) => send('PATCH', `/v1/lists/${id}/entries`, { key, body })
  const entries = async (id: string, query = '') => {
    const { status, body } = await send('GET', `/v1/lists/${id}/entries${query}`, { key })
    t.equal(status, 200, JSON.stringify(body))
    return body
  }
  const valuesOf = async (id: string, query = '') =>
    (await entries(id, query)).data.map(({ value }: { value: string }) => value)
  return { ...server, key, make, patch, entries, valuesOf }
}

t.test('a list is made, read, changed, listed and deleted', async (t) => {
  const { send, key, make, patch } = await open(t)
  const made = await send('POST', '/v1/lists', { key, body: { name: 'bad_devices', type: 'visitor' } })
  t.equal(made.status, 201)
  t.match(made.body, {
    id: LIST_ID,
    name: 'bad_devices',
    type: 'visitor',
    entryCount: 0,
    ttl: null,
    createdAt: TIME,
  })
  const { id } = made.body
  await make('Office.ips', 'ip', { description: 'Our offices', ttl: 60 })
  const read = await send('GET', `/v1/lists/${id}`, { key })
  t.same(read.body, { ...made.body, usedByRules: [] })

  const changed = await send('PUT', `/v1/lists/${id}`, { key, body: { description: 'Bots', ttl: 3600 } })
  t.match(changed, { status: 200, body: { id, description: 'Bots', ttl: 3600, entryCount: 0 } })
  t.match((await send('PUT', `/v1/lists/${id}`, { key, body: { ttl: null } })).body, { description: 'Bots', ttl: null })
  t.equal((await send('PUT', `/v1/lists/${id}`, { key, raw: '' })).status, 200, 'nothing given changes nothing')
  t.equal((await patch(id, { add: [PV(1)] })).body.entryCount, 1)

  const listed = await send('GET', '/v1/lists', { key })
  t.equal(listed.body.total, 2)
  t.same(
    listed.body.data.map((list: object) => Object.keys(list)),
    new Array(2).fill(['id', 'name', 'type', 'entryCount', 'createdAt', 'updatedAt']),
  )
  t.match((await send('GET', '/v1/lists?type=ip', { key })).body, { total: 1, data: [{ name: 'Office.ips' }] })
  t.match((await send('GET', '/v1/lists?type=email', { key })).body, { total: 0, data: [] })
  t.match((await send('GET', '/v1/lists?limit=1&offset=1', { key })).body, { total: 2, data: [{ name: 'Office.ips' }] })

  const gone = await send('DELETE', `/v1/lists/${id}`, { key })
  t.same(gone.body, { deleted: true, listId: id, affectedRules: [] })
  for (const [method, path, body] of [
    ['GET', `/v1/lists/${id}`, undefined],
    ['DELETE', `/v1/lists/${id}`, undefined],
    ['PUT', `/v1/lists/${id}`, { ttl: 1 }],
    ['GET', `/v1/lists/${id}/entries`, undefined],
    ['PATCH', `/v1/lists/${id}/entries`, { add: [PV(1)] }],
    ['POST', `/v1/lists/${id}/entries/check`, { values: [PV(1)] }],
  ] as const) {
    const answer = await send(method, path, { key, ...(body === undefined ? {} : { body }) })
    t.match(answer, { status: 404, body: { error: { code: 'not_found' } } }, `${method} ${path}`)
  }
  const again = await make('bad_devices', 'visitor')
  t.not(again.id, id)
  t.equal((await send('GET', `/v1/lists/${again.id}`, { key })).body.entryCount, 0, 'the old entries stay gone')
})

t.test('names are unique without regard to case, in each environment', async (t) => {
  const { send, key, testSecret, make } = await open(t)
  await make('Mixed_Case', 'ip')
  const second = await send('POST', '/v1/lists', { key, body: { name: 'mixed_CASE', type: 'email' } })
  t.match(second, { status: 409, body: { error: { code: 'conflict', field: 'name' } } })
  const elsewhere = await send('POST', '/v1/lists', { key: testSecret, body: { name: 'mixed_case', type: 'email' } })
  t.equal(elsewhere.status, 201)
  t.equal((await send('GET', `/v1/lists/${elsewhere.body.id}`, { key })).status, 404, 'not of this environment')
})

t.test('what cannot be a list is refused with the member at fault', async (t) => {
  const { send, key } = await open(t)
  const good = { name: 'x', type: 'ip' }
  const cases: [unknown, string][] = [
    [{ type: 'ip' }, 'name'],
    [{ name: 'x' }, 'type'],
    [{ ...good, type: 'device' }, 'type'],
    [{ ...good, ttl: 0 }, 'ttl'],
    [{ ...good, ttl: 1.5 }, 'ttl'],
    [{ ...good, ttl: '60' }, 'ttl'],
    [{ ...good, ttl: 400_000_000 }, 'ttl'],
    [{ ...good, description: 5 }, 'description'],
    [{ ...good, description: 'x'.repeat(501) }, 'description'],
    [{ ...good, entries: [] }, 'entries'],
    ...['', ' x', '_x', '-x', 'a b', 'a/b', 'ä', 'a\0b', 'x'.repeat(65), 'a\n', '__proto__', 5, null].map(
      (name): [unknown, string] => [{ ...good, name }, 'name'],
    ),
  ]
  for (const [body, field] of cases) {
    const answer = await send('POST', '/v1/lists', { key, body })
    t.match(answer, { status: 400, body: { error: { code: 'validation_error', field } } }, JSON.stringify(body))
  }
  for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
    t.equal((await send('POST', '/v1/lists', { key, body: { name, type: 'ip' } })).status, 201, name)
  }
  for (const query of ['type=x', 'limit=0', 'limit=101', 'offset=10001', 'offset=-1', 'sort=name']) {
    const answer = await send('GET', `/v1/lists?${query}`, { key })
    t.match(answer, { status: 400, body: { error: { field: query.split('=')[0] } } }, query)
  }
  for (const body of [{ name: 'y' }, { type: 'ip' }, { ttl: -1 }]) {
    const answer = await send('PUT', '/v1/lists/lst_00000000000000000000', { key, body })
    t.match(answer, { status: 400, body: { error: { field: Object.keys(body)[0] } } }, JSON.stringify(body))
  }
  for (const id of ['lst_short', 'x', 'lst_00000000000000000000', '%00', '..%2f']) {
    t.match(await send('GET', `/v1/lists/${id}`, { key }), { status: 404, body: { error: { code: 'not_found' } } }, id)
  }
})

t.test('entries are added and removed in one step, and counted once', async (t) => {
  const { make, patch, entries, valuesOf } = await open(t)
  const { id } = await make('devices', 'visitor')
  const first = await patch(id, { add: [PV(3), PV(1), PV(2), PV(1)] })
  t.same(first.body, { listId: id, added: 3, removed: 0, entryCount: 3 })
  t.same((await patch(id, { add: [PV(2), PV(4)], remove: [PV(1), PV(9)] })).body, {
    listId: id,
    added: 1,
    removed: 1,
    entryCount: 3,
  })
  t.same(await valuesOf(id), [PV(2), PV(3), PV(4)])
  t.same((await patch(id, {})).body, { listId: id, added: 0, removed: 0, entryCount: 3 })
  t.match((await entries(id)).data[0], {
    value: PV(2),
    addedAt: TIME,
    expiresAt: null,
    source: 'api',
    ruleId: null,
    reason: null,
  })

  const refused: [unknown, string][] = [
    [{ add: [PV(5), 'nobody'] }, 'add[1]'],
    [{ add: [PV(5), PV(6), PV(7), 'pv_'] }, 'add[3]'],
    [{ add: [PV(5), 'pv_short'] }, 'add[1]'],
    [{ add: [{ value: `${PV(5)}0` }] }, 'add[0]'],
    [{ add: [PV(5), 7] }, 'add[1]'],
    [{ add: [PV(5), null] }, 'add[1]'],
    [{ add: [[PV(5)]] }, 'add[0]'],
    [{ add: [{ value: PV(5), ttl: 0 }] }, 'add[0].ttl'],
    [{ add: [{ value: PV(5), ttl: 'x' }] }, 'add[0].ttl'],
    [{ add: [{ value: PV(5), reason: 5 }] }, 'add[0].reason'],
    [{ add: [{ value: PV(5), reason: 'x'.repeat(201) }] }, 'add[0].reason'],
    [{ add: [{ value: PV(5), note: 'x' }] }, 'add[0].note'],
    [{ add: [{ ttl: 5 }] }, 'add[0]'],
    [{ add: [PV(5), 'pv_a\0b'] }, 'add[1]'],
    [{ add: [PV(5)], remove: [PV(8), 'x@y'] }, 'remove[1]'],
    [{ add: [PV(5), PV(6)], remove: [PV(1), PV(6)] }, 'remove[1]'],
    [{ add: PV(5) }, 'add'],
    [{ add: [PV(5)], replace: true }, 'replace'],
    [{ add: Array.from({ length: 1_001 }, (_, i) => PV(i)) }, 'add'],
    [
      { add: Array.from({ length: 500 }, (_, i) => PV(i)), remove: Array.from({ length: 501 }, (_, i) => PV(900 + i)) },
      'add',
    ],
  ]
  for (const [body, field] of refused) {
    const { status, body: got } = await patch(id, body)
    t.match({ status, error: got.error }, { status: 400, error: { code: 'validation_error', field } }, field)
  }
  t.same(await valuesOf(id), [PV(2), PV(3), PV(4)], 'nothing of a refused call is applied')
  const many = Array.from({ length: 1_000 }, (_, i) => PV(1_000 + i))
  t.match((await patch(id, { add: many })).body, { added: 1_000, entryCount: 1_003 })
  t.match((await patch(id, { remove: many })).body, { removed: 1_000, entryCount: 3 })
})

t.test('every spelling of an entry is one entry', async (t) => {
  const { make, patch, valuesOf } = await open(t)
  const ips = (await make('ips', 'ip')).id
  const spelled = ['203.0.113.9', '::ffff:203.0.113.9', '::FFFF:cb00:7109', '203.0.113.9/32', ' 203.0.113.9 ']
  t.match((await patch(ips, { add: spelled })).body, { added: 1, entryCount: 1 })
  const more = [
    '10.1.2.3/8',
    '10.0.0.0/8',
    '2001:DB8:0:0::1',
    '2001:db8::1/128',
    '2001:db8:ffff::/32',
    '0.0.0.0/0',
    '::/0',
  ]
  t.match((await patch(ips, { add: more })).body, { added: 5, entryCount: 6 })
  t.same(await valuesOf(ips), ['0.0.0.0/0', '10.0.0.0/8', '2001:db8::/32', '2001:db8::1', '203.0.113.9', '::/0'])
  t.match((await patch(ips, { remove: ['::ffff:203.0.113.9'] })).body, { removed: 1 })
  for (const value of [
    '1.2.3',
    '1.2.3.4/33',
    '01.2.3.4',
    '1.2.3.4/08',
    'fe80::1%eth0',
    '::1/129',
    'host',
    '',
    '1.2.3.4/',
  ]) {
    t.match(await patch(ips, { add: [value] }), { status: 400, body: { error: { field: 'add[0]' } } }, value)
  }
  const emails = (await make('mails', 'email')).id
  t.match((await patch(emails, { add: ['A@B.example', ' a@b.EXAMPLE ', 'ü@ö.example'] })).body, { added: 2 })
  t.same(await valuesOf(emails), ['a@b.example', 'ü@ö.example'])
  for (const value of ['a', 'a@', '@b', 'a b@c', 'a@b@c', 'a@b\0c', `${'x'.repeat(320)}@b`, '\u202e'.repeat(200)]) {
    t.match(await patch(emails, { add: [value] }), { status: 400, body: { error: { field: 'add[0]' } } }, value)
  }
})

t.test('entries are read page by page, by prefix, with a cursor that is good for nothing else', async (t) => {
  const { send, key, make, patch, entries, valuesOf } = await open(t)
  const { id } = await make('mails', 'email')
  const other = (await make('more', 'email')).id
  const all = Array.from({ length: 250 }, (_, i) => `u${String(i).padStart(3, '0')}@b.example`)
  await patch(id, { add: all })
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: { value: string }[]; hasMore: boolean; nextCursor: string | null } = await entries(
      id,
      `?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`,
    )
    seen.push(...page.data.map(({ value }) => value))
    t.equal(page.hasMore, page.nextCursor !== null)
    cursor = page.nextCursor
  }
  t.same(seen, all)
  t.equal((await entries(id)).data.length, 20, 'twenty unless asked otherwise')
  t.same(await valuesOf(id, '?q=U01'), all.slice(10, 20))
  t.same(await valuesOf(id, '?q=u249@b.example'), ['u249@b.example'])
  t.same(await valuesOf(id, '?q=v'), [])
  const { nextCursor } = await entries(id, '?limit=5&q=u0')
  t.same(await valuesOf(id, `?limit=2&q=u0&cursor=${nextCursor}`), all.slice(5, 7), 'the limit may change')
  for (const path of [
    `${id}/entries?q=u1&cursor=${nextCursor}`,
    `${other}/entries?q=u0&cursor=${nextCursor}`,
    `${id}/entries?q=u0&cursor=${nextCursor.slice(1)}`,
    `${id}/entries?q=u0&cursor=x`,
  ]) {
    const answer = await send('GET', `/v1/lists/${path}`, { key })
    t.match(answer, { status: 400, body: { error: { field: 'cursor' } } }, path)
  }
  for (const query of ['limit=0', 'limit=101', `q=${'x'.repeat(321)}`, 'offset=1']) {
    t.equal((await send('GET', `/v1/lists/${id}/entries?${query}`, { key })).status, 400, query)
  }
})

t.test('a check says what decisions would see, ranges included', async (t) => {
  const { send, key, make, patch } = await open(t)
  const { id } = await make('ips', 'ip')
  await patch(id, { add: ['10.0.0.0/8', '203.0.113.9', '2001:db8::/32'] })
  const check = (values: unknown) => send('POST', `/v1/lists/${id}/entries/check`, { key, body: { values } })
  const { body } = await check([
    '10.9.8.7',
    '11.0.0.1',
    '::ffff:203.0.113.9',
    '2001:DB8::5',
    '2001:db9::5',
    '10.0.0.0/8',
    '10.1.0.0/16',
  ])
  t.same(body.data, [
    { value: '10.9.8.7', present: true },
    { value: '11.0.0.1', present: false },
    { value: '203.0.113.9', present: true },
    { value: '2001:db8::5', present: true },
    { value: '2001:db9::5', present: false },
    { value: '10.0.0.0/8', present: true },
    { value: '10.1.0.0/16', present: false },
  ])
  t.match(await check(['10.0.0.1', 'x']), { status: 400, body: { error: { field: 'values[1]' } } })
  t.match(await check([]), { status: 400, body: { error: { field: 'values' } } })
  t.match(await check(new Array(101).fill('1.1.1.1')), { status: 400, body: { error: { field: 'values' } } })
  t.equal((await check(Array.from({ length: 100 }, (_, i) => `2001:db8::${i}`))).status, 200)
})

t.test('a file of entries is taken as text/csv', async (t) => {
  const { send, key, make, entries } = await open(t)
  const { id } = await make('mails', 'email')
  const put = (raw: string | Uint8Array, type = 'text/csv') =>
    send('PATCH', `/v1/lists/${id}/entries`, { key, raw, headers: { 'Content-Type': type } })
  const file = '\uFEFFvalue,ttl,reason\r\nA@b.example\r\nc@d.example,60,"burst, ""again"""\r\n"e@f.example",,\n\n'
  t.match(await put(file), { status: 200, body: { added: 3, entryCount: 3 } })
  const { data } = await entries(id)
  t.match(data, [
    { value: 'a@b.example', source: 'import', expiresAt: null, reason: null },
    { value: 'c@d.example', source: 'import', expiresAt: TIME, reason: 'burst, "again"' },
    { value: 'e@f.example', expiresAt: null },
  ])
  t.match(await put('x@y.example', 'text/csv; charset=utf-8'), { status: 200, body: { added: 1 } })
  const refused: [string, string][] = [
    ['g@h.example\nnobody\n', 'add[1]'],
    ['g@h.example,soon', 'add[0].ttl'],
    ['"g@h.example', 'add[0]'],
    ['"g@h.example"x', 'add[0]'],
    ['g@h.example,1,r,more', 'add[0]'],
    [Array.from({ length: 1_001 }, (_, i) => `u${i}@b.example`).join('\n'), 'add'],
  ]
  for (const [raw, field] of refused) {
    t.match(await put(raw), { status: 400, body: { error: { code: 'validation_error', field } } }, raw.slice(0, 40))
  }
  t.equal((await put(Buffer.from([0xff, 0xfe]))).status, 400)
  t.equal((await put('x@y.example', 'text/plain')).status, 415)
  t.equal((await entries(id)).data.length, 4, 'nothing of a refused file is applied')
})

t.test('entries live as long as they, or else their list, say', async (t) => {
  const { make, patch, entries, send, key } = await open(t)
  const { id } = await make('devices', 'visitor', { ttl: 3_600 })
  type Shown = readonly { value: string; expiresAt: string | null }[]
  /** Adds them; `lives` tells whether one lives so many seconds from then, null for ever. */
  const add = async (...add: unknown[]) => {
    const from = Date.now()
    const { body } = await patch(id, { add })
    const to = Date.now()
    const lives = (data: Shown, n: number, seconds: number | null) => {
      const expiresAt = data.find(({ value }) => value === PV(n))?.expiresAt
      if (seconds === null || typeof expiresAt !== 'string') return t.equal(expiresAt, null, `${n} for ever`)
      const addedAt = Date.parse(expiresAt) - seconds * 1_000
      t.ok(addedAt >= from - 500 && addedAt <= to + 500, `${n} for ${seconds} s`)
    }
    return { body, lives }
  }
  const first = await add(
    ...[PV(1), { value: PV(2), ttl: 60 }, { value: PV(3), ttl: null, reason: 'for ever' }, { value: PV(4), ttl: 5 }],
  )
  const { data } = await entries(id)
  for (const [n, seconds] of [3_600, 60, null, 5].entries()) first.lives(data, n + 1, seconds)
  t.equal(data[2].reason, 'for ever')

  const again = await add({ value: PV(2), ttl: 7_200 })
  t.match(again.body, { added: 0 })
  again.lives((await entries(id)).data, 2, 7_200)
  await send('PUT', `/v1/lists/${id}`, { key, body: { ttl: null } })
  const later = await add(PV(5))
  const { data: both } = await entries(id)
  first.lives(both, 1, 3_600)
  later.lives(both, 5, null)

  const endsAt = Date.parse(data.find(({ value }: { value: string }) => value === PV(4)).expiresAt)
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, endsAt - Date.now())))
  const isShown = async (n: number) => (await entries(id)).data.some(({ value }: { value: string }) => value === PV(n))
  t.equal(
    await eventually(
      () => isShown(4),
      (shown) => !shown,
    ),
    false,
    'what is overdue is not shown',
  )
  const { body } = await send('POST', `/v1/lists/${id}/entries/check`, { key, body: { values: [PV(4), PV(1)] } })
  t.same(
    body.data.map(({ present }: { present: boolean }) => present),
    [false, true],
  )
  t.match((await patch(id, { add: [PV(4)] })).body, { added: 1 }, 'and counts as new')
})

t.test('the maxima of lists and entries are kept', async (t) => {
  const { send, key, make, patch, valuesOf } = await open(t, { listMaxima: { listsMax: 2, entriesMax: 3 } })
  const { id } = await make('a', 'visitor')
  const second = await make('b', 'visitor')
  const third = await send('POST', '/v1/lists', { key, body: { name: 'c', type: 'visitor' } })
  t.match(third, { status: 409, body: { error: { code: 'resource_limit_reached' } } })
  await send('DELETE', `/v1/lists/${second.id}`, { key })
  await make('c', 'visitor')
  await patch(id, { add: [PV(1), PV(2)] })
  const full = await patch(id, { add: [PV(3), PV(4)] })
  t.match(full, { status: 409, body: { error: { code: 'resource_limit_reached' } } })
  t.same(await valuesOf(id), [PV(1), PV(2)], 'nothing of it is applied')
  t.match(await patch(id, { add: [PV(3), PV(4)], remove: [PV(1)] }), { status: 200, body: { added: 2, entryCount: 3 } })
  t.match(
    await patch(id, { add: [PV(3)] }),
    { status: 200, body: { added: 0, entryCount: 3 } },
    'what is there has room',
  )
})

t.test('keys need the scope of lists, and see the lists of their workspace alone', async (t) => {
  const { send, admin, key, publicKey, make } = await open(t)
  const { id } = await make('mine', 'visitor')
  const keyWith = async (scopes: readonly string[], workspace = 'ws_default') =>
    (await admin('POST', `/workspaces/${workspace}/keys`, { kind: 'secret', environment: 'live', scopes })).body.key
  const reader = await keyWith(['lists:read'])
  const writer = await keyWith(['lists:write'])
  const calls = [
    ['POST', '/v1/lists', { name: 'new', type: 'ip' }, 'write'],
    ['GET', '/v1/lists', undefined, 'read'],
    ['GET', `/v1/lists/${id}`, undefined, 'read'],
    ['PUT', `/v1/lists/${id}`, { ttl: 5 }, 'write'],
    ['GET', `/v1/lists/${id}/entries`, undefined, 'read'],
    ['PATCH', `/v1/lists/${id}/entries`, { add: [PV(1)] }, 'write'],
    ['POST', `/v1/lists/${id}/entries/check`, { values: [PV(1)] }, 'read'],
    ['DELETE', `/v1/lists/${id}`, undefined, 'write'],
  ] as const
  for (const [method, path, body, scope] of calls) {
    const with_ = (one: string | null) => send(method, path, { key: one, ...(body === undefined ? {} : { body }) })
    const refused = await with_(scope === 'read' ? writer : reader)
    t.match(refused, { status: 403, body: { error: { code: 'insufficient_permissions' } } }, `${method} ${path}`)
    t.equal((await with_(publicKey)).status, 403)
    t.equal((await with_(null)).status, 401)
  }
  const { body: workspace } = await admin('POST', '/workspaces', { name: 'other' })
  const stranger = await keyWith(['lists:read', 'lists:write'], workspace.id)
  t.equal((await send('GET', `/v1/lists/${id}`, { key: stranger })).status, 404)
  t.equal((await send('DELETE', `/v1/lists/${id}`, { key: stranger })).status, 404)
  t.equal((await send('GET', '/v1/lists', { key: stranger })).body.total, 0)
  t.equal((await send('GET', `/v1/lists/${id}`, { key })).status, 200)
})

t.test('every write of a list is in the audit log, and no entry of it', async (t) => {
  const { send, key, make, patch } = await open(t)
  const made = await make('Devices', 'visitor')
  await patch(made.id, { add: [PV(77)] })
  const { body: changed } = await send('PUT', `/v1/lists/${made.id}`, { key, body: { description: 'seen twice' } })
  await send('PUT', `/v1/lists/${made.id}`, { key, body: {} })
  await send('DELETE', `/v1/lists/${made.id}`, { key })
  const { status, body } = await send('GET', `/v1/audit?resource=list&id=${made.id}`, { key })
  t.equal(status, 200)
  const entry = { actor: key.slice(-4), resource: 'list', id: made.id }
  t.same(
    body.data.map(({ at: _, by: __, ...one }: { at: string; by: unknown }) => one),
    [
      { ...entry, action: 'delete', before: changed, after: null },
      {
        ...entry,
        action: 'update',
        before: { ...changed, description: null, updatedAt: body.data[1].before.updatedAt },
        after: changed,
      },
      { ...entry, action: 'entries', before: null, after: { id: made.id, added: 1, removed: 0, source: 'api' } },
      { ...entry, action: 'create', before: null, after: made },
    ],
  )
  t.notMatch(JSON.stringify(body), /pv_secret/)
})

t.test('rules name lists that exist and suit the field, and a list knows its rules', async (t) => {
  const { send, key, make } = await open(t)
  const visitors = await make('Devices', 'visitor')
  await make('ips', 'ip')
  await make('mails', 'email')
  const rule = (field: string, value: unknown, more: object = {}, operator = 'in') => ({
    name: 'r',
    conditions: { operator: 'AND', rules: [{ field, operator, value }] },
    action: { verdict: 'block', ...more },
    status: 'draft',
  })
  const put = (body: unknown) => send('POST', '/v1/rules', { key, body })
  const accepted = [
    rule('visitorId', 'devices'),
    rule('ip', 'IPS', {}, 'not_in'),
    rule('ip.address', 'ips'),
    rule('email', 'mails'),
    rule('linkedId', 'devices'),
    rule('tag.mail', 'mails'),
    rule('visitorId', [PV(1)]),
    rule(
      'visitorFound',
      true,
      { sideEffects: [{ type: 'addToList', list: 'DEVICES', ttl: 60, reason: 'x' }] },
      'equals',
    ),
    rule('visitorFound', true, { sideEffects: [{ type: 'removeFromList', list: 'ips', value: 'tag.ip' }] }, 'equals'),
  ]
  const made: string[] = []
  for (const body of accepted) {
    const answer = await put(body)
    t.equal(answer.status, 201, JSON.stringify(answer.body))
    made.push(answer.body.id)
  }
  const effects = (...sideEffects: unknown[]) => rule('visitorFound', true, { sideEffects }, 'equals')
  const at = 'action.sideEffects[0]'
  const leaf = 'conditions.rules[0].value'
  const hook = 'https://hooks.slack.com/services/T0/B0/secret'
  const refused: [unknown, string][] = [
    [rule('visitorId', 'nowhere'), leaf],
    [rule('visitorId', 'ips'), leaf],
    [rule('ip', 'mails', {}, 'not_in'), leaf],
    [rule('email', 'devices'), leaf],
    [rule('device.type', 'devices'), leaf],
    [rule('visitorId', ''), leaf],
    [rule('visitorId', '__proto__'), leaf],
    [rule('visitorId', 'constructor'), leaf],
    [effects({ type: 'addToList' }), `${at}.list`],
    [effects({ type: 'addToList', list: 'nowhere' }), `${at}.list`],
    [effects({ type: 'addToList', list: 5 }), `${at}.list`],
    [effects({ type: 'addToList', list: 'devices', value: 'ip' }), `${at}.value`],
    [effects({ type: 'addToList', list: 'devices', value: 'device.type' }), `${at}.value`],
    [effects({ type: 'addToList', list: 'devices', value: 'nothing' }), `${at}.value`],
    [effects({ type: 'addToList', list: 'devices', ttl: 0 }), `${at}.ttl`],
    [effects({ type: 'addToList', list: 'devices', reason: 5 }), `${at}.reason`],
    [effects({ type: 'removeFromList', list: 'devices', ttl: 5 }), `${at}.ttl`],
    [effects({ type: 'webhook', url: 'https://shop.example/hook' }), `${at}.url`],
    [effects({ type: 'webhook', webhookId: 'https://shop.example' }), `${at}.webhookId`],
    [effects({ type: 'slack', url: 'http://hooks.slack.com/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://user:pw@hooks.slack.com/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://127.0.0.1/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://[::1]/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://localhost/x' }), `${at}.url`],
    [effects({ type: 'slack', url: 'https://hooks.slack.com/****' }), `${at}.url`],
    [effects({ type: 'slack', url: hook, message: '{{nothing}}' }), `${at}.message`],
    [effects({ type: 'slack' }), `${at}.url`],
    [effects({ type: 'toString' }), `${at}.type`],
  ]
  for (const [body, field] of refused) {
    t.match(
      await put(body),
      { status: 400, body: { error: { code: 'validation_error', field } } },
      JSON.stringify(body),
    )
  }
  const { body: hooked } = await send('POST', '/v1/webhooks', { key, body: { url: 'https://shop.example/hook' } })
  const noted = await put(
    effects({ type: 'slack', url: hook, message: 'a {{ip.country}}' }, { type: 'webhook', webhookId: hooked.id }),
  )
  t.equal(noted.status, 201, JSON.stringify(noted.body))
  const { body: read } = await send('GET', `/v1/rules/${noted.body.id}`, { key })
  t.same(read.sideEffects[0], { type: 'slack', url: 'https://hooks.slack.com/****', message: 'a {{ip.country}}' })
  t.notMatch(JSON.stringify(read), /secret/)

  const { body: list } = await send('GET', `/v1/lists/${visitors.id}`, { key })
  const naming = [made[0], made[4], made[7]].sort()
  t.same([...list.usedByRules].sort(), naming)
  const { body: deleted } = await send('DELETE', `/v1/lists/${visitors.id}`, { key })
  t.same([...deleted.affectedRules].sort(), naming)
  t.equal((await put(rule('visitorId', 'devices'))).status, 400, 'it cannot be named any more')
})

t.test('hostile text in every member is refused or kept as it is', async (t) => {
  const { send, key, make, patch, entries } = await open(t)
  const { id } = await make('mails', 'email')
  const raw = (text: string) => send('PATCH', `/v1/lists/${id}/entries`, { key, raw: text })
  t.equal((await raw('{"add":["a\\ud800@b.example"]}')).status, 400)
  t.equal((await raw('{"add":[{"value":"a@b.example","reason":"\\udfff"}]}')).status, 400)
  t.match(await raw('{"add":[{"value":"a@b.example","__proto__":{"ttl":1}}]}'), { status: 400 })
  t.match(await raw('{"__proto__":{"add":["a@b.example"]}}'), { status: 400 })
  const reasons = ['\0', "'; DROP TABLE events; --", '{{visitorId}}', '<script>', '\u202e\u0007', '$(x)', '=cmd()']
  await patch(id, { add: reasons.map((reason, i) => ({ value: `u${i}@b.example`, reason })) })
  t.same(
    (await entries(id)).data.map(({ reason }: { reason: string }) => reason),
    reasons,
  )
  for (const q of ['%00', '%F4%8F%BF%BF', "'", '%25', '__proto__', '/', '..']) {
    t.equal((await send('GET', `/v1/lists/${id}/entries?q=${q}`, { key })).status, 200, q)
  }
})
