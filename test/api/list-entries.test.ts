// Entries of lists as a client sees them: added, removed, read, checked, in files, and for how long.

import t from 'tap'
import { eventually } from '../helpers/client.ts'
import { openLists, PV } from './list-surface.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

t.test('entries are added and removed in one step, and counted once', async (t) => {
  const { make, patch, entries, valuesOf } = await openLists(t)
  const { id } = await make('devices', 'visitor')
  const first = await patch(id, { add: [PV(3), PV(1), PV(2), PV(1)] })
  t.same(first.body, { listId: id, added: 3, removed: 0, skippedErased: 0, entryCount: 3 })
  t.same((await patch(id, { add: [PV(2), PV(4)], remove: [PV(1), PV(9)] })).body, {
    listId: id,
    added: 1,
    removed: 1,
    skippedErased: 0,
    entryCount: 3,
  })
  t.same(await valuesOf(id), [PV(2), PV(3), PV(4)])
  t.same((await patch(id, {})).body, { listId: id, added: 0, removed: 0, skippedErased: 0, entryCount: 3 })
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
  const { make, patch, valuesOf } = await openLists(t)
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
  const { send, key, make, patch, entries, valuesOf } = await openLists(t)
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
  const { send, key, make, patch } = await openLists(t)
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
  const { send, key, make, entries } = await openLists(t)
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
  const { make, patch, entries, send, key } = await openLists(t)
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
  const { send, key, make, patch, valuesOf } = await openLists(t, { listMaxima: { listsMax: 2, entriesMax: 3 } })
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
