// Answers that are long: made and read in steps beside which others are served, in pages that end, and stored once.

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { COMPRESSED_BYTES_MIN } from '../../src/api/compressed.ts'
import { openPacedKv } from '../../src/api/paced-kv.ts'
import { openPacedSteps } from '../../src/api/paced-steps.ts'
import { keyed } from '../../src/api/routes.ts'
import { openListedRules } from '../../src/api/rules/listed.ts'
import type { Kv, KvEntry, KvKey } from '../../src/kv/kv.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { readRuleSlots } from '../../src/records/rules.ts'
import { scanAll } from '../../src/records/scopes.ts'
import { openServer, RULE } from '../helpers/rest-surface.ts'

const PAGE_BYTES_MAX = 1_048_576

/** Conditions of about 200 KB, different ones for each `n`. */
const long = (n: number) => ({
  operator: 'OR',
  rules: Array.from({ length: 8 }, (_, i) => ({
    field: 'linkedId',
    operator: 'in',
    value: Array.from({ length: 100 }, (_, j) => `${n}-${i}-${j}-`.padEnd(250, 'x')),
  })),
})

t.test(
  'pages of the audit log and of versions end with the entry that passes a megabyte, and miss nothing',
  async (t) => {
    const { send, secret: key, base } = await openServer(t)
    const made = await send('POST', '/v1/rules', { key, body: { ...RULE, conditions: long(0) } })
    const { id } = made.body
    for (let n = 1; n < 9; n++) {
      const changes = n % 3 === 0 ? { conditions: long(n) } : { name: `Name ${n}` }
      await send('PUT', `/v1/rules/${id}`, { key, body: changes })
    }
    for (const path of ['/v1/audit?limit=100&resource=rule', `/v1/rules/${id}/versions?limit=100`]) {
      const seen: { readonly at: string; readonly after?: object; readonly rule?: object }[] = []
      let pages = 0
      for (let cursor = ''; pages < 20; pages++) {
        const asked = await fetch(`${base}${path}${cursor}`, { headers: { Authorization: `Bearer ${key}` } })
        const text = await asked.text()
        const page = JSON.parse(text)
        const last = JSON.stringify(page.data.at(-1))
        t.ok(
          text.length - last.length <= PAGE_BYTES_MAX + 200,
          `${path}: the page before its last entry is no megabyte`,
        )
        if (page.hasMore) t.ok(text.length > PAGE_BYTES_MAX, 'and with it, it is')
        seen.push(...page.data)
        if (!page.hasMore) break
        cursor = `&cursor=${page.nextCursor}`
      }
      t.ok(pages > 0, 'there was more than one')
      t.equal(seen.length, 9)
      const names = seen.map(({ after, rule }) => ((after ?? rule) as { readonly name: string }).name)
      t.same(names, ['Name 8', 'Name 7', 'Name 5', 'Name 5', 'Name 4', 'Name 2', 'Name 2', 'Name 1', 'Bots'])
      const conditions = seen.map(({ after, rule }) => ((after ?? rule) as { readonly conditions: object }).conditions)
      t.same(conditions.at(-1), long(0))
      t.same(conditions[0], long(6), 'what a change left alone is shown with it')
    }
  },
)

t.test('what a change left alone is stored once, however many changes there are', async (t) => {
  const { send, secret: key, kv } = await openServer(t)
  const { id } = (await send('POST', '/v1/rules', { key, body: { ...RULE, conditions: long(0) } })).body
  for (let n = 0; n < 30; n++) await send('PUT', `/v1/rules/${id}`, { key, body: { name: `Name ${n}` } })
  let bytes = 0
  for (const collection of ['audit', 'audit-in', 'audit-of', 'audit-part']) {
    for await (const { value } of scanAll(kv, 'w/ws_default/live', collection)) bytes += JSON.stringify(value).length
  }
  const once = JSON.stringify(long(0)).length
  t.ok(bytes > once && bytes < 1.2 * once, `${bytes} characters where the conditions alone have ${once}`)
  await send('PUT', `/v1/rules/${id}`, { key, body: { conditions: long(1) } })
  const { data } = (await send('GET', `/v1/rules/${id}/versions?limit=3`, { key })).body
  const back = await send('POST', `/v1/rules/${id}/rollback`, { key, body: { version: data[1].version } })
  t.equal(back.status, 200)
  t.same((await send('GET', `/v1/rules/${id}`, { key })).body.conditions, long(0), 'a rollback finds it')
})

t.test(
  'entries that an earlier version stored whole are read beside new ones, and can be rolled back to',
  async (t) => {
    const { send, secret: key, kv } = await openServer(t)
    const { id } = (await send('POST', '/v1/rules', { key, body: RULE })).body
    const scope = 'w/ws_default/live'
    const entries: { readonly key: KvKey; readonly value: object }[] = []
    for await (const entry of scanAll<object>(kv, scope, 'audit')) entries.push(entry)
    const { body: shown } = await send('GET', '/v1/audit', { key })
    const [rule] = await kv.get(scope, [['rule', id]])
    const last = entries.at(-1)
    const { change: _, ...rest } = (last?.value ?? {}) as Record<string, unknown>
    const whole = { ...rest, before: null, after: rule?.value }
    await kv.commit([{ scope, put: [{ key: last?.key ?? ['audit', ''], value: whole }] }])
    t.same((await send('GET', '/v1/audit', { key })).body, shown)
    await send('PUT', `/v1/rules/${id}`, { key, body: { name: 'Other' } })
    const { data } = (await send('GET', `/v1/rules/${id}/versions`, { key })).body
    t.same(
      data.map(({ rule }: { rule: { name: string } }) => rule.name),
      ['Other', 'Bots'],
    )
    t.equal((await send('POST', `/v1/rules/${id}/rollback`, { key, body: { version: data[1].version } })).status, 200)
    t.match((await send('GET', `/v1/rules/${id}`, { key })).body, { name: 'Bots', conditions: RULE.conditions })
  },
)

t.test('a long answer arrives whole, and others are served while it is made', async (t) => {
  const items = Array.from({ length: 3_000 }, (_, i) => ({ i, text: `ü${'x'.repeat(1_000)}`, missing: undefined }))
  // One item longer than a slice, of characters that take two units: cuts at odd places must not part them.
  items.push({ i: -1, text: `x${'😀'.repeat(100_000)}`, missing: undefined })
  const body = { before: 1, none: undefined, items, nothing: [], list: [undefined, null, 'a'], after: { a: [1] } }
  const route = keyed({ method: 'GET', path: '/v1/long', access: 'any-key', handle: () => ({ body }) })
  const { base, secret } = await openServer(t, { routes: [route] })
  const get = (path: string, method = 'GET') =>
    fetch(`${base}${path}`, { method, headers: { Authorization: `Bearer ${secret}` } })
  let isOver = false
  const long = get('/v1/long').then(async (answer) => {
    const text = await answer.text()
    isOver = true
    return text
  })
  let served = 0
  while (!isOver) {
    t.equal((await get('/v1/meta')).status, 200)
    if (!isOver) served++
  }
  t.equal(await long, JSON.stringify(body))
  t.ok(served > 0, `${served} others meanwhile`)
  t.equal((await (await get('/v1/long', 'HEAD')).text()).length, 0)
  const left = new AbortController()
  const headers = { Authorization: `Bearer ${secret}` }
  await fetch(`${base}/v1/long`, { headers, signal: left.signal }).then(() => left.abort())
  t.equal(await (await get('/v1/long')).text(), JSON.stringify(body), 'a client that leaves disturbs nobody')
})

t.test('a long answer is compressed for whoever takes that, and a short one for nobody', async (t) => {
  const items = Array.from({ length: 3_000 }, (_, i) => ({ i, text: `ü${'x'.repeat(i % 100)}` }))
  const bodies = new Map<string, unknown>([
    ['short', { text: 'x'.repeat(COMPRESSED_BYTES_MIN - 11) }],
    ['one', { text: 'x'.repeat(COMPRESSED_BYTES_MIN - 10) }],
    ['long', { items }],
  ])
  const route = keyed({
    method: 'GET',
    path: '/v1/made/:name',
    access: 'any-key',
    handle: ({ params }) => ({ body: bodies.get(params.name ?? '') }),
  })
  const { base, secret } = await openServer(t, { routes: [route] })
  /** As it comes over the wire; `fetch` would take any coding away. */
  const get = async (name: string, accepted: string) => {
    const headers = { authorization: `Bearer ${secret}`, 'accept-encoding': accepted }
    const [answer] = (await once(request(`${base}/v1/made/${name}`, { headers }).end(), 'response')) as [
      IncomingMessage,
    ]
    const bytes = Buffer.concat(await answer.toArray())
    return { coding: answer.headers['content-encoding'], vary: answer.headers.vary, bytes }
  }
  const decoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = { br: brotliDecompressSync, gzip: gunzipSync }
  const cases: readonly (readonly [accepted: string, coding: string | undefined])[] = [
    ['gzip, deflate, br', 'br'],
    ['GZIP', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['identity', undefined],
    ['', undefined],
  ]
  for (const [accepted, wanted] of cases) {
    for (const [name, body] of bodies) {
      const { coding, vary, bytes } = await get(name, accepted)
      t.equal(coding, name === 'short' ? undefined : wanted, `${name}, ${accepted}`)
      t.equal(vary, name === 'short' ? undefined : 'Accept-Encoding')
      const text = (coding === undefined ? bytes : (decoders[coding] as (bytes: Buffer) => Buffer)(bytes)).toString()
      t.equal(text, JSON.stringify(body))
      if (coding !== undefined) t.ok(bytes.length < text.length / 5)
    }
  }
})

t.test('long steps come one at a time and rest as long as they took; what failed keeps nobody waiting', async (t) => {
  let nowMs = 0
  const rests: number[] = []
  const turns = openPacedSteps({
    monotonic: () => nowMs,
    async sleep(ms) {
      rests.push(ms)
    },
  })
  const step = (ms: number) => () => {
    nowMs += ms
    return ms
  }
  const failing = () => {
    nowMs += 7
    throw new Error('broken')
  }
  const [first, second, third] = await Promise.allSettled([
    turns.take(step(20)),
    turns.take(failing),
    turns.take(step(5)),
  ])
  t.match([first, second, third], [{ value: 20 }, { reason: /broken/ }, { value: 5 }])
  await new Promise((resolve) => setImmediate(resolve))
  t.same(rests, [20, 7, 5])
})

t.test('what turned out to be long is followed by a rest, and its kind waits for a turn from then on', async (t) => {
  let nowMs = 0
  let costMs = 0
  const rests: number[] = []
  const waking: (() => void)[] = []
  const clock = {
    ...systemClock,
    monotonic: () => nowMs,
    sleep: (ms: number) =>
      new Promise<void>((resolve) => {
        rests.push(ms)
        waking.push(resolve)
      }),
  }
  let reads = 0
  const get = async () => {
    reads++
    nowMs += costMs
    return [null]
  }
  const kv = openPacedKv({ get, scan: get } as unknown as Kv, openPacedSteps(clock), clock)
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  await kv.get('w', [['rule', 'a']])
  await settled()
  t.same(rests, [], 'nobody rests after a short one')
  costMs = 5
  await kv.get('w', [['rule', 'a']])
  const second = kv.get('w', [['rule', 'b']])
  const scan = kv.scan('w', 'rule', { limit: 1 })
  await kv.get('w', [['list', 'a']])
  await settled()
  t.equal(reads, 3, 'another kind does not wait, this one does')
  for (let n = 0; n < 4; n++) {
    waking.shift()?.()
    await settled()
  }
  await Promise.all([second, scan])
  t.equal(reads, 5)
  t.same(rests, [5, 5, 5, 5])
})

t.test('rules are listed from what is known of their version', async (t) => {
  const { send, secret: key, kv } = await openServer(t)
  const ids: string[] = []
  for (let n = 0; n < 3; n++)
    ids.push((await send('POST', '/v1/rules', { key, body: { ...RULE, priority: n } })).body.id)
  let read = 0
  const counting = {
    get: async <T>(scope: string, keys: readonly KvKey[]) => {
      read += keys.length
      return kv.get<T>(scope, keys)
    },
  }
  const list = openListedRules(counting)
  const names = async () => {
    const slots = await readRuleSlots(kv, 'ws_default', 'live')
    return (await list('ws_default', 'live', slots)).map(({ id, name }) => [id, name])
  }
  const wanted = ids.map((id) => [id, RULE.name])
  t.same(await names(), wanted)
  t.same(await names(), wanted)
  t.equal(read, 3)
  await send('PUT', `/v1/rules/${ids[1]}`, { key, body: { name: 'Other' } })
  await send('DELETE', `/v1/rules/${ids[0]}`, { key })
  t.same(await names(), [[ids[1], 'Other'], wanted[2]])
  t.equal(read, 4, 'only what changed is read again')
})

t.test('many keys are read in order, in steps that grow while they are short', async (t) => {
  let nowMs = 0
  const asked: number[] = []
  let costMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs, sleep: async () => undefined }
  const get = async <T>(_scope: string, keys: readonly KvKey[]): Promise<(KvEntry<T> | null)[]> => {
    asked.push(keys.length)
    nowMs += costMs * keys.length
    return keys.map((key) => (key[1] === '3' ? null : { key, value: key[1] as T, version: 1 }))
  }
  const kv = openPacedKv({ get } as Kv, openPacedSteps(clock), clock)
  const keys = Array.from({ length: 50 }, (_, i): KvKey => ['rule', String(i)])
  const wanted = keys.map(([, id]) => (id === '3' ? null : id))
  const values = async () => (await kv.get<string>('w', keys)).map((entry) => entry?.value ?? null)
  t.same(await values(), wanted)
  t.same(asked.splice(0), [4, 16, 30])
  costMs = 3
  t.same(await values(), wanted)
  t.same(asked, [...Array(12).fill(4), 2])
})
