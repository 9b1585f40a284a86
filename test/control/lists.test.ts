// Lists in the control plane: what their commands leave behind, applied once, twice, or from the beginning.

import t, { type Test } from 'tap'
import { runControl } from '../../src/control/owner.ts'
import { newToldLists, openListFeed } from '../../src/engine/list-feed.ts'
import { createListViews } from '../../src/engine/list-views.ts'
import { runListJob } from '../../src/jobs/lists.ts'
import { COMMIT_KEYS_MAX } from '../../src/kv/kv.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { auditPuts, readAudit, readAuditSeqs, type StoredAuditEntry } from '../../src/records/audit.ts'
import type { CommandDraft } from '../../src/records/commands.ts'
import { DELTAS_KEPT, LIST_DELTA, readDeltas, readListsMeta } from '../../src/records/list-deltas.ts'
import { openListSource } from '../../src/records/list-source.ts'
import { LIST_DUE, LIST_ENTRY, LIST_GONE, listsOfVisitor, readList, readLists } from '../../src/records/lists.ts'
import { scanAll, tenantScope } from '../../src/records/scopes.ts'
import { createWorkspace, openPorts, prepare, random, startOwner, startSubmit } from '../helpers/control-plane.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)

const MISSED = DELTAS_KEPT + 100
/** The quick run leaves out what takes a thousand commands. */
const WHOLE = sized({ quick: false, usual: true, long: true })
const COMMANDS = sized({ quick: 60, usual: 150, long: 600 })

const WS = 'ws_a'
const SCOPE = tenantScope(WS, 'live')
type Data<T extends CommandDraft['type']> = Extract<CommandDraft, { type: T }>['data']
const list = <T extends CommandDraft['type']>(type: T, data: Data<T>) =>
  ({ type, workspace: WS, env: 'live', actor: 'test', data }) as CommandDraft
const make = (id: string, name: string, type: 'visitor' | 'ip' | 'email' = 'visitor', ttl: number | null = null) =>
  list('list.create', { id, name, type, description: null, ttl, maxima: { listsMax: 100 } })
const entries = (id: string, add: Data<'list.entries'>['add'], remove: readonly string[] = []) =>
  list('list.entries', { id, add, remove, source: 'api', entriesMax: 10_000 })
const value = (text: string) => ({ value: text })
const pv = (n: number | string) => `pv_${String(n).padStart(20, '0')}`
const effects = (seq: number, part: number, some: readonly [string, string, boolean?][], deployment = 'd') =>
  list('list.effects', {
    deployment,
    partition: 0,
    seq,
    part,
    entriesMax: 10_000,
    effects: some.map(([name, of, remove = false], index) => ({
      list: name,
      value: of,
      remove,
      index,
      requestId: `req_${seq}`,
      ruleId: 'rul_a',
    })),
  })

async function open(t: Test) {
  const ports = await openPorts(t)
  await prepare(ports)
  const owner = startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace(WS))
  const allOf = async (collection: string) => {
    const ids: string[] = []
    for await (const { key } of scanAll(ports.kv, SCOPE, collection)) ids.push(key[1])
    return ids
  }
  return { ...ports, owner, submit, allOf }
}

t.test('side effects are applied once, however often and by whomever they are repeated', async (t) => {
  const { submit, kv, allOf } = await open(t)
  await submit(make('lst_a', 'a'))
  const counts = async (draft: CommandDraft) => {
    const outcome = await submit(draft)
    return outcome.ok ? (outcome.entries ?? null) : outcome.code
  }
  t.same(
    await counts(
      effects(5, 0, [
        ['A', pv(1)],
        ['a', pv(2)],
      ]),
    ),
    { added: 2, removed: 0, skipped: 0 },
  )
  t.same(await counts(effects(5, 1, [['a', pv(3)]])), { added: 1, removed: 0, skipped: 0 })
  await submit(entries('lst_a', [], [pv(1), pv(2), pv(3)]))
  for (const [seq, part] of [
    [5, 0],
    [5, 1],
    [3, 7],
    [1, 0],
  ] as const) {
    t.equal(await counts(effects(seq, part, [['a', pv(1)]])), null, `${seq} ${part} was before`)
  }
  t.same(await allOf(LIST_ENTRY), [])
  t.same(
    await counts(
      effects(6, 0, [
        ['a', pv(1)],
        ['a', pv(1), true],
        ['a', pv(4)],
      ]),
    ),
    {
      added: 1,
      removed: 0,
      skipped: 0,
    },
  )
  t.same(await allOf(LIST_ENTRY), [`lst_a/${pv(4)}`], 'in order')
  t.same(
    await counts(
      effects(7, 0, [
        ['gone', pv(1)],
        ['a', 'no visitor'],
        ['a', 'pv_short'],
        ['a', pv(5)],
      ]),
    ),
    {
      added: 1,
      removed: 0,
      skipped: 3,
    },
  )
  t.same(await counts(effects(1, 0, [['a', pv(6)]], 'another deployment')), { added: 1, removed: 0, skipped: 0 })
  t.equal((await readList(kv, WS, 'live', 'lst_a'))?.entryCount, 3)
  await submit(entries('lst_a', [value('pv_stored-before')]))
  const off = effects(8, 0, [['a', 'pv_stored-before', true]], 'another deployment')
  t.same(await counts(off), { added: 0, removed: 1, skipped: 0 }, 'what was ever taken can be taken off')
})

/** What the audit log says of the entries of a list, newest first, without when. */
async function countsLogged(kv: Parameters<typeof readAudit>[0]): Promise<Omit<StoredAuditEntry, 'at' | 'seq'>[]> {
  const found: Omit<StoredAuditEntry, 'at' | 'seq'>[] = []
  await readAudit(kv, WS, 'live', { resource: 'list', id: 'lst_a' }, 100, null, ({ at: _, seq: __, ...one }) => {
    if (one.action === 'entries') found.push(one)
    return true
  })
  return found
}

t.test('another expiry or reason of an entry is in the audit log, and what changes nothing is not', async (t) => {
  const { submit, kv } = await open(t)
  await submit(make('lst_a', 'a'))
  const logged = async () => (await countsLogged(kv)).map(({ after }) => after)
  const counted = (added: number, refreshed: number) => ({ id: 'lst_a', added, removed: 0, refreshed, source: 'api' })
  await submit(entries('lst_a', [value(pv(1)), value(pv(2))]))
  await submit(entries('lst_a', [value(pv(1)), value(pv(2))]))
  t.same(await logged(), [counted(2, 0)])
  await submit(entries('lst_a', [{ value: pv(1), ttl: 600 }, value(pv(2)), value(pv(3))]))
  t.same(await logged(), [counted(1, 1), counted(2, 0)])
  await submit(entries('lst_a', [{ value: pv(2), reason: 'known' }]))
  await submit(entries('lst_a', [{ value: pv(2), reason: 'known' }]))
  t.same(await logged(), [counted(0, 1), counted(1, 1), counted(2, 0)])
})

t.test('what rules do to a list is one entry of the audit log per hour, with counts and no value', async (t) => {
  const { submit, kv } = await open(t)
  await submit(make('lst_a', 'a'))
  const logged = () => countsLogged(kv)
  const entry = (added: number, removed: number, refreshed = 0) => ({
    actor: 'test',
    resource: 'list',
    id: 'lst_a',
    action: 'entries',
    before: null,
    after: { id: 'lst_a', added, removed, refreshed, source: 'rule' },
  })
  await submit(
    effects(5, 0, [
      ['a', pv(1)],
      ['a', pv(2)],
    ]),
  )
  t.same(await logged(), [entry(2, 0)])
  await submit(effects(5, 1, [['a', pv(3)]]))
  await submit(effects(5, 1, [['a', pv(3)]]))
  await submit(effects(6, 0, [['a', pv(3)]]))
  await submit(effects(7, 0, [['a', pv(1), true]]))
  t.same(await logged(), [entry(3, 1)], 'as often as it is told, and only what changed')
  await submit(list('list.update', { id: 'lst_a', changes: { ttl: 600 } }))
  for (const seq of [8, 9]) await submit(effects(seq, 0, [['a', pv(3)]]))
  t.same(await logged(), [entry(3, 1, 2)], 'what lives longer by it is counted as well')
  const [growing] = await kv.get<{ readonly at: number }>(SCOPE, [['list-effects-audit', 'lst_a']])
  const ago = { ...growing?.value, at: (growing?.value.at ?? 0) - 3_600_000 }
  await kv.commit([{ scope: SCOPE, put: [{ key: ['list-effects-audit', 'lst_a'], value: ago }] }])
  await submit(effects(10, 0, [['a', pv(4)]]))
  t.same(await logged(), [entry(1, 0), entry(3, 1, 2)], 'another hour, another entry')
  await submit(list('list.delete', { id: 'lst_a' }))
  t.same(await kv.get(SCOPE, [['list-effects-audit', 'lst_a']]), [null])
})

t.test('an entry that is overdue is gone before the job has come to it', async (t) => {
  const { submit, kv, allOf } = await open(t)
  await submit(make('lst_a', 'a', 'visitor', 1))
  await submit(entries('lst_a', [value(pv(1)), value(pv(2)), { value: pv(3), ttl: null }]))
  t.equal((await allOf(LIST_DUE)).length, 2)
  await new Promise((resolve) => setTimeout(resolve, 1_050))
  const outcome = await submit(entries('lst_a', [value(pv(1))], [pv(2), pv(9)]))
  t.match(outcome, { ok: true, entries: { added: 1, removed: 0 }, list: { entryCount: 2 } })
  const { last } = await readListsMeta(kv, WS, 'live')
  t.equal(await readDeltas(kv, WS, 'live', 1, last), null, 'a delta is found by the one before it')
  const all = (await readDeltas(kv, WS, 'live', 0, last)) ?? []
  t.match(all.at(-1)?.changes, [
    {
      added: [{ value: pv(1), isNew: true, source: 'api' }],
      removed: [],
      expired: [{ value: pv(2) }, { value: pv(1) }],
    },
  ])
  t.equal((await allOf(LIST_DUE)).length, 1)
  t.same(await allOf(LIST_ENTRY), [`lst_a/${pv(1)}`, `lst_a/${pv(3)}`])
})

t.test('the job takes off what is due, on time, and clears what deleted lists leave', async (t) => {
  const { submit, kv, log, bus, allOf } = await open(t)
  await submit(make('lst_a', 'a'))
  await submit(make('lst_b', 'b', 'visitor', 1))
  const values = Array.from({ length: 1_000 }, (_, i) => `pv_${i}`)
  for (let i = 0; i < 3; i++)
    await submit(
      entries(
        'lst_b',
        values.map((text) => value(`${text}_${i}`)),
      ),
    )
  await submit(list('list.delete', { id: 'lst_b' }))
  t.same(await allOf(LIST_GONE), ['lst_b'])
  const stopped = new AbortController()
  const errors: unknown[] = []
  const needs = { log, kv, bus, clock: systemClock, random, onError: (error: unknown) => void errors.push(error) }
  const job = runListJob(needs, stopped.signal)
  const from = Date.now()
  await submit(entries('lst_a', [{ value: pv(1), ttl: 2 }, { value: pv(2), ttl: 60 }, value(pv(3))]))
  while ((await readList(kv, WS, 'live', 'lst_a'))?.entryCount !== 2 && Date.now() - from < 60_000) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.ok(Date.now() - from >= 2_000, 'not before it was due')
  while ((await allOf(LIST_GONE)).length > 0 && Date.now() - from < 90_000) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  stopped.abort()
  await job
  t.same(errors, [])
  t.same(await allOf(LIST_ENTRY), [`lst_a/${pv(2)}`, `lst_a/${pv(3)}`])
  t.equal((await allOf(LIST_DUE)).length, 1)
})

t.test('applying changes from the beginning gives the same lists', async (t) => {
  const { submit, kv, log, owner } = await open(t)
  const r = rng(seed)
  const ids = ['lst_a', 'lst_b', 'lst_c']
  let made = 0
  const draw = () => pv(r.int(40))
  for (const [place, id] of ids.entries()) await submit(make(id, 'abc'[place] as string, 'visitor', null))
  await submit(make('lst_gone', 'gone', 'visitor', null))
  await submit(list('list.delete', { id: 'lst_gone' }))
  for (let i = 0; i < COMMANDS; i++) {
    const place = r.int(ids.length)
    const id = ids[place] as string
    await submit(
      r.pick([
        () => {
          // An id is never used again.
          ids[place] = `lst_${++made}`
          return make(ids[place], 'abc'[place] as string, 'visitor', r.pick([null, 1, 100]))
        },
        () => list('list.update', { id, changes: { ttl: r.pick([null, 5]) } }),
        () => list('list.delete', { id }),
        () => entries(id, [value(draw()), { value: draw(), ttl: r.pick([null, 1, 50]) }], [pv(40 + r.int(5)), draw()]),
        () => entries(id, [value(draw())]),
        () => entries(id, [{ value: draw(), ttl: 9 }]),
        () =>
          effects(r.int(100), 0, [
            [r.pick(['a', 'B', 'c']), draw()],
            ['a', draw(), true],
          ]),
        () => list('list.forget', { visitorId: draw() }),
      ])(),
    )
  }
  // What the random commands may have left without any.
  await submit(make('lst_kept', 'kept', 'visitor', null))
  await submit(entries('lst_kept', [value(draw())]))
  await submit(effects(100, 0, [['kept', pv(99)]]))
  await owner.stop()
  const fresh = await openPorts(t)
  await prepare(fresh)
  const stopped = new AbortController()
  const last = await log.last('changes', 0)
  const replayed = runControl({
    ...fresh,
    log: { ...log, append: fresh.log.append },
    clock: systemClock,
    signal: stopped.signal,
    report: () => undefined,
  })
  while ((await fresh.kv.position('system', 'changes.reader')) !== last) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  stopped.abort()
  await replayed
  for (const collection of [
    'list',
    'list-name',
    'list-entry',
    'list-due',
    'list-gone',
    LIST_DELTA,
    'list-effects',
    'list-effects-audit',
    'meta',
  ]) {
    const dump = async (from: typeof kv) => {
      const all: unknown[] = []
      for await (const { key, value } of scanAll(from, SCOPE, collection)) all.push([key, value])
      return all
    }
    const [first, second] = [await dump(kv), await dump(fresh.kv)]
    t.strictSame(second, first, collection)
    t.ok(first.length > 0 || collection === 'list-due', `${collection} is not empty`)
  }
  for (const { id, entryCount } of await readLists(kv, WS, 'live')) {
    let count = 0
    for await (const { key } of scanAll(kv, SCOPE, LIST_ENTRY)) if (key[1].startsWith(`${id}/`)) count++
    t.equal(entryCount, count, `${id} counts its entries`)
  }
})

t.test('a follower sees every change within two seconds, hints or not, and after any absence', async (t) => {
  const { submit, kv, bus } = await open(t)
  await submit(make('lst_a', 'a'))
  await submit(entries('lst_a', [value(pv(0))]))
  let isDeaf = false
  const listening = {
    ...bus,
    subscribe: (subject: string, receive: (message: unknown) => void) =>
      bus.subscribe(subject, (message) => {
        if (!isDeaf) receive(message)
      }),
  }
  let poll = () => {}
  const polling = new Promise<void>((resolve) => {
    poll = resolve
  })
  const clock: Clock = {
    ...systemClock,
    async sleep(ms, signal) {
      const left = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
      // Zero is a turn of the event loop within a reading.
      if (ms > 0) await Promise.race([polling, left])
      await systemClock.sleep(ms, signal)
    },
  }
  let read = 0
  const feed = await openListFeed({
    kv,
    bus: listening,
    clock,
    key: [1, 2, 3, 4],
    report: {
      followed: (_, lists) => {
        read += lists
      },
      failed: (error) => t.fail(String(error)),
    },
  })
  t.teardown(feed.stop)
  const told = newToldLists()
  const views = createListViews(Date.now)
  const member = views.member(WS, 'live')
  const ask = (name: string, text: string) => {
    views.take(feed.news(told))
    return member(name, text)
  }
  const waitFor = async (name: string, text: string, wanted: boolean | null) => {
    const from = performance.now()
    while (ask(name, text) !== wanted && performance.now() - from < 20_000) await new Promise((r) => setTimeout(r, 5))
    return performance.now() - from
  }
  t.equal(ask('a', pv(0)), true)
  t.equal(read, 1)
  await submit(entries('lst_a', [value(pv(1))], [pv(0)]))
  t.ok((await waitFor('a', pv(1), true)) < 20_000, 'by the hint: nobody polls yet')
  t.equal(ask('a', pv(0)), false)
  isDeaf = true
  poll()
  await submit(entries('lst_a', [value(pv(2))]))
  t.ok((await waitFor('a', pv(2), true)) < 20_000, 'by the poll')
  await submit(make('lst_b', 'b'))
  await submit(entries('lst_b', [value(pv(7))]))
  t.ok((await waitFor('b', pv(7), true)) < 20_000)
  await submit(list('list.delete', { id: 'lst_b' }))
  t.ok((await waitFor('b', pv(7), null)) < 20_000, 'a list that is gone is no list')

  const late = newToldLists()
  const lateViews = createListViews(Date.now)
  lateViews.take(feed.news(late))
  t.equal(lateViews.member(WS, 'live')('a', pv(2)), true, 'a new thread is told everything')
  t.same(feed.news(late), [], 'and nothing twice')
})

t.test('a store that was emptied takes no entry from decisions', async (t) => {
  const { submit, kv, bus } = await open(t)
  await submit(make('lst_a', 'a'))
  await submit(entries('lst_a', [value(pv(0))]))
  let isEmpty = false
  let asked = 0
  const emptied = {
    get: (async (scope: string, keys: readonly never[]) => {
      asked += 1
      return isEmpty ? keys.map(() => null) : kv.get(scope, keys)
    }) as typeof kv.get,
    scan: (async (scope: string, ...rest: Parameters<typeof kv.scan> extends [string, ...infer R] ? R : never) =>
      isEmpty && scope === SCOPE ? [] : kv.scan(scope, ...rest)) as typeof kv.scan,
  }
  const feed = await openListFeed({
    kv: emptied,
    bus,
    clock: systemClock,
    key: [1, 2, 3, 4],
    report: { followed: () => undefined, failed: (error) => t.fail(String(error)) },
  })
  t.teardown(feed.stop)
  const told = newToldLists()
  const views = createListViews(Date.now)
  views.take(feed.news(told))
  t.equal(views.member(WS, 'live')('a', pv(0)), true)
  isEmpty = true
  const before = asked
  while (asked < before + 4) await new Promise((resolve) => setTimeout(resolve, 50))
  views.take(feed.news(told))
  t.equal(views.member(WS, 'live')('a', pv(0)), true, 'until it is rebuilt')
  isEmpty = false
  await submit(entries('lst_a', [], [pv(0)]))
  const from = performance.now()
  while (views.member(WS, 'live')('a', pv(0)) === true && performance.now() - from < 30_000) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    views.take(feed.news(told))
  }
  t.equal(views.member(WS, 'live')('a', pv(0)), false, 'and is followed again')
})

if (WHOLE) {
  t.test('a follower who missed more than is kept reads the lists anew', async (t) => {
    const { submit, kv, bus, allOf } = await open(t)
    await submit(make('lst_a', 'a', 'email'))
    await submit(make('lst_b', 'b'))
    const stopped: (() => void)[] = []
    const gate = { isShut: false }
    const slow = {
      ...kv,
      get: (async (scope: string, keys: never) => {
        while (gate.isShut) await new Promise<void>((resolve) => stopped.push(resolve))
        return kv.get(scope, keys)
      }) as typeof kv.get,
    }
    let read = 0
    const feed = await openListFeed({
      kv: slow,
      bus,
      clock: systemClock,
      key: [1, 2, 3, 4],
      report: {
        followed: (_, lists) => {
          read += lists
        },
        failed: (error) => t.fail(String(error)),
      },
    })
    t.teardown(feed.stop)
    t.equal(read, 2)
    gate.isShut = true
    for (let i = 0; i < MISSED; i += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, k) =>
          submit(entries('lst_a', [value(`u${i + k}@b.example`)], [`u${i + k - 100}@b.example`])),
        ),
      )
    }
    t.ok((await allOf(LIST_DELTA)).length <= DELTAS_KEPT + 50, 'what is kept is bounded')
    gate.isShut = false
    for (const go of stopped) go()
    const told = newToldLists()
    const views = createListViews(Date.now)
    const from = performance.now()
    while (views.member(WS, 'live')('a', `u${MISSED - 1}@b.example`) !== true && performance.now() - from < 30_000) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      views.take(feed.news(told))
    }
    t.equal(read, 3, 'and of those only what has changed')
    const member = views.member(WS, 'live')
    const wrong = Array.from({ length: MISSED }, (_, i) => i).filter(
      (i) => member('a', `u${i}@b.example`) !== i >= MISSED - 100,
    )
    t.same(wrong, [])
  })
}

t.test('a list can be read whole: its facts by name, its entries in pages', async (t) => {
  const { submit, kv } = await open(t)
  let leapMs = 0
  const source = openListSource(kv, { ...systemClock, now: () => systemClock.now() + leapMs })
  t.equal(await source.find(WS, 'live', 'nets'), null)
  await submit(make('lst_a', 'Nets', 'ip'))
  const made = await source.find(WS, 'live', 'nETS')
  t.match(made, { id: 'lst_a', name: 'Nets', type: 'ip', entryCount: 0 })
  const nets = Array.from({ length: 4_500 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`)
  for (let i = 0; i < nets.length; i += 1_000) await submit(entries('lst_a', nets.slice(i, i + 1_000).map(value)))
  await submit(entries('lst_a', [{ value: '192.0.2.1', ttl: 600 }, value('2001:db8::/32')]))
  const filled = await source.find(WS, 'live', 'nets')
  t.not(filled?.version, made?.version)
  t.equal(filled?.entryCount, 4_502)
  const read = async (signal?: AbortSignal) => {
    const pages: (readonly string[])[] = []
    for await (const page of source.values(WS, 'live', 'lst_a', signal)) pages.push(page)
    return pages
  }
  t.same((await read()).flat(), [...nets, '192.0.2.1', '2001:db8::/32'].sort())
  t.ok((await read()).every((page) => page.length <= 2_000))
  leapMs = 601_000
  t.notOk((await read()).flat().includes('192.0.2.1'), 'what is over is left out')
  await submit(list('list.update', { id: 'lst_a', changes: { description: 'x' } }))
  t.equal((await source.find(WS, 'live', 'nets'))?.version, filled?.version, 'only entries make a version')
  t.same(await read(AbortSignal.abort()), [])
  await submit(list('list.delete', { id: 'lst_a' }))
  t.equal(await source.find(WS, 'live', 'nets'), null)
})

t.test('an erased visitor is taken off every list', async (t) => {
  const { submit, kv } = await open(t)
  for (const name of ['a', 'b', 'c']) await submit(make(`lst_${name}`, name))
  await submit(make('lst_e', 'e', 'email'))
  await submit(entries('lst_a', [value(pv(1)), value(pv(2))]))
  await submit(entries('lst_b', [{ value: pv(1), ttl: 100 }]))
  t.same(await listsOfVisitor(kv, WS, 'live', pv(1), Date.now()), ['a', 'b'])
  t.match(await submit(list('list.forget', { visitorId: pv(1) })), { ok: true, entries: { removed: 2 } })
  t.match(await submit(list('list.forget', { visitorId: pv(1) })), { ok: true, entries: { removed: 0 } })
  t.same(await listsOfVisitor(kv, WS, 'live', pv(1), Date.now()), [])
  t.same(
    (await readLists(kv, WS, 'live')).map(({ entryCount }) => entryCount),
    [1, 0, 0, 0],
  )
})

t.test('of an erased visitor every entry of the audit log goes, however many there are', async (t) => {
  const { submit, kv } = await open(t)
  await submit(make('lst_a', 'a'))
  await submit(entries('lst_a', [value(pv(1)), value(pv(2))]))
  const notes = COMMIT_KEYS_MAX / 4 + 500
  const noted = Array.from({ length: notes }, (_, i) =>
    auditPuts({
      ...{ resource: 'event', id: `req_${i}`, action: 'label', before: null, after: { label: 'fraud' } },
      ...{ about: pv(i % 700 === 0 ? 2 : 1), at: 0, actor: 'key_a', seq: 1_000_000 + i },
    }),
  )
  for (let from = 0; from < notes; from += 1_000) {
    await kv.commit([{ scope: SCOPE, put: noted.slice(from, from + 1_000).flat() }])
  }
  t.match(await submit(list('list.forget', { visitorId: pv(1) })), { ok: true, entries: { removed: 1 } })
  t.same(await listsOfVisitor(kv, WS, 'live', pv(1), Date.now()), [])
  t.same(await readAuditSeqs(kv, WS, 'live', 'visitor', pv(1)), [])
  const left: unknown[] = []
  for await (const { key } of scanAll(kv, SCOPE, 'audit-in')) if (key[1].startsWith('event/')) left.push(key)
  t.equal(left.length, Math.ceil(notes / 700), 'those of others stay')
})
