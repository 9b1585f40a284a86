// What every backend of the kv guarantees.
import type { Test } from 'tap'
import { COMMIT_KEYS_MAX, type Commit, type Kv, type KvKey, VALUE_BYTES_MAX, type Version } from '../../src/kv/kv.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'

/** What the kv under test must be opened with as unsorted. */
export const UNSORTED = ['heap', 'heap[*]?\\']

export interface OpenedKv {
  /** A new, empty kv. */
  readonly kv: Kv
  /** Closes the kv and opens the same data again. */
  readonly reopen?: () => Promise<Kv>
}

const SCOPE = 'p/0'
const BRIEF_MS = 300
const STEPS = sized({ quick: 50, usual: 100, long: 200 })
const WALKED = sized({ quick: 603, usual: 1_203, long: 1_203 })
const outcome = async (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function one(kv: Kv, commit: Commit): Promise<boolean> {
  return must((await kv.commit([commit]))[0])
}

async function put(kv: Kv, key: KvKey, value: unknown, scope = SCOPE): Promise<Version> {
  await kv.commit([{ scope, put: [{ key, value }] }])
  return must((await kv.get(scope, [key]))[0]).version
}

async function value(kv: Kv, key: KvKey, scope = SCOPE): Promise<unknown> {
  return (await kv.get(scope, [key]))[0]?.value
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

export function kvContract(t: Test, name: string, open: () => Promise<OpenedKv>): void {
  t.test(`kv contract: ${name}`, { buffered: true }, async (t) => {
    const guarantee = (title: string, check: (t: Test, opened: OpenedKv) => Promise<void>) =>
      t.test(title, async (t) => {
        const opened = await open()
        t.teardown(() => opened.kv.close())
        await check(t, opened)
      })

    await guarantee('commits of several scopes are decided together where that is offered', async (t, { kv }) => {
      if (kv.commitTogether === undefined) {
        t.pass('it is not')
        return
      }
      const scopes = ['p/0', 'p/1', 'p/2']
      const step = (expect: number | null, next: number, more: Partial<Commit> = {}) =>
        scopes.map((scope): Commit => ({ scope, guard: { source: 's', expect, next }, ...more }))
      const positions = () => Promise.all(scopes.map((scope) => kv.position(scope, 's')))
      const mark = { put: [{ key: ['c', 'mark'] as const, value: 1 }], add: [[['c', 'n'], 2] as const] }
      t.equal(await kv.commitTogether(step(null, 5, mark)), true)
      t.same(await positions(), [5, 5, 5])
      for (const scope of scopes)
        t.same([await value(kv, ['c', 'mark'], scope), await value(kv, ['c', 'n'], scope)], [1, 2])

      await kv.commit([{ scope: 'p/1', guard: { source: 's', expect: 5, next: 6 } }])
      t.equal(await kv.commitTogether(step(5, 7, { drop: [['c', 'mark']] })), false, 'one of them is behind')
      t.same(await positions(), [5, 6, 5])
      for (const scope of scopes) t.equal(await value(kv, ['c', 'mark'], scope), 1)

      const checked = scopes.map(
        (scope, at): Commit => ({ scope, check: at === 2 ? [[['c', 'mark'], null]] : [], ...mark }),
      )
      t.equal(await kv.commitTogether(checked), false, 'a check of the last fails')
      const counted = scopes.map((scope, at): Commit => ({ scope, add: [[['c', at === 2 ? 'mark' : 'n'], 1]] }))
      t.ok((await outcome(kv.commitTogether(counted))) instanceof TypeError)
      t.ok((await outcome(kv.commitTogether([...checked, { scope: 'p/0' }]))) instanceof RangeError)
      for (const scope of scopes) t.equal(await value(kv, ['c', 'n'], scope), 2, 'nothing of them was written')
      t.equal(await kv.commitTogether([]), true)
    })

    await guarantee('values come back equal, in the order of the keys, null for what is missing', async (t, { kv }) => {
      const values = [
        { text: 'ünï', list: [1, 2.5, -3, null, true], nested: { deep: { deeper: [] } } },
        'text',
        0,
        false,
        null,
        [],
        2 ** 53 - 1,
      ]
      await kv.commit([
        { scope: SCOPE, put: values.map((value, index) => ({ key: ['c', `${index}`] as const, value })) },
      ])
      const keys = values.map((_, index) => ['c', `${index}`] as const)
      const found = await kv.get(SCOPE, [...keys, ['c', 'missing'], must(keys[0])])
      t.same(
        found.map((entry) => (entry === null ? 'missing' : entry.value)),
        [...values, 'missing', values[0]],
      )
      t.same(
        found.slice(0, 3).map((entry) => entry?.key),
        keys.slice(0, 3),
      )
      t.equal(found.at(-2), null)
      t.same(await kv.get(SCOPE, []), [])
    })

    await guarantee('bytes are stored as they are', async (t, { kv }) => {
      for (const size of [0, 1, 13, 5_000, 70_000]) {
        const bytes = Uint8Array.from({ length: size }, (_, index) => index & 255)
        await put(kv, ['c', `${size}`], bytes)
        const found = await value(kv, ['c', `${size}`])
        t.ok(found instanceof Uint8Array)
        t.equal(Buffer.compare(found as Uint8Array, bytes), 0, `${size} bytes`)
      }
    })

    await guarantee('within a commit puts come first, then drops, then adds, each in order', async (t, { kv }) => {
      for (const ttlMs of [[], [60_000], [60_000, undefined], [undefined, 60_000]]) {
        const puts = (id: string) =>
          ['first', 'last'].map((value, at) => {
            const ttl = ttlMs[at % (ttlMs.length || 1)]
            return { key: ['c', id] as const, value, ...(ttl === undefined ? {} : { ttlMs: ttl }) }
          })
        const drop = [['c', 'dropped']] as const
        await kv.commit([{ scope: SCOPE, drop, add: [[drop[0], 2]], put: [...puts('kept'), ...puts('dropped')] }])
        const found = (await kv.scan(SCOPE, 'c', { limit: 9 })).map(({ key, value }) => [key[1], value])
        t.same(found, [
          ['dropped', 2],
          ['kept', 'last'],
        ])
        await kv.commit([{ scope: SCOPE, put: puts('dropped'), drop }])
        t.equal(await value(kv, drop[0]), undefined)
        t.equal((await kv.scan(SCOPE, 'c', { limit: 9 })).length, 1)
      }
    })

    await guarantee('every read returns a value of its own', async (t, { kv }) => {
      await put(kv, ['c', 'object'], { list: [1], bytes: Buffer.from('inner') })
      await put(kv, ['c', 'bytes'], Buffer.from('outer'))
      const [first, second] = await kv.get<{ list: number[]; bytes: Uint8Array }>(SCOPE, [
        ['c', 'object'],
        ['c', 'object'],
      ])
      const [bytes] = await kv.get<Uint8Array>(SCOPE, [['c', 'bytes']])
      await put(kv, ['c', 'other'], { list: [9, 9, 9, 9], bytes: Buffer.from('XXXXX') })
      await kv.get(SCOPE, [['c', 'other']])
      t.equal(Buffer.from(must(first).value.bytes).toString(), 'inner', 'not overwritten by a later read')
      t.equal(Buffer.from(must(bytes).value).toString(), 'outer')
      must(first).value.list.push(2)
      must(first).value.bytes.fill(0)
      must(bytes).value.fill(0)
      t.same(must(second).value.list, [1])
      t.same(Buffer.from((await value(kv, ['c', 'bytes'])) as Uint8Array).toString(), 'outer')
    })

    await guarantee('a value may change after the call without changing what is stored', async (t, { kv }) => {
      const mutable = { at: 1 }
      const bytes = Buffer.from('before')
      const done = kv.commit([
        {
          scope: SCOPE,
          put: [
            { key: ['c', 'a'], value: mutable },
            { key: ['c', 'b'], value: bytes },
          ],
        },
      ])
      mutable.at = 2
      bytes.fill(0)
      await done
      t.same(await value(kv, ['c', 'a']), { at: 1 })
      t.equal(Buffer.from((await value(kv, ['c', 'b'])) as Uint8Array).toString(), 'before')
    })

    await guarantee('a check holds for exactly one version, null for absence', async (t, { kv }) => {
      const key: KvKey = ['c', 'k']
      t.equal(await one(kv, { scope: SCOPE, check: [[key, 1]], put: [{ key, value: 'x' }] }), false)
      t.equal(await one(kv, { scope: SCOPE, check: [[key, null]], put: [{ key, value: 'made' }] }), true)
      t.equal(await one(kv, { scope: SCOPE, check: [[key, null]], put: [{ key, value: 'x' }] }), false)
      const { version } = must((await kv.get(SCOPE, [key]))[0])
      t.equal(await one(kv, { scope: SCOPE, check: [[key, version]], put: [{ key, value: 'next' }] }), true)
      t.equal(await one(kv, { scope: SCOPE, check: [[key, version]], drop: [key] }), false)
      t.equal(await value(kv, key), 'next')
    })

    await guarantee('a commit is all or nothing', async (t, { kv }) => {
      const version = await put(kv, ['c', 'a'], 1)
      const refused: Commit = {
        scope: SCOPE,
        guard: { source: 'log', expect: null, next: 5 },
        check: [
          [['c', 'a'], version],
          [['c', 'b'], 1],
        ],
        put: [
          { key: ['c', 'a'], value: 2 },
          { key: ['c', 'b'], value: 2 },
        ],
        drop: [['c', 'a']],
        add: [[['n', 'x'], 1]],
      }
      t.equal(await one(kv, refused), false)
      t.equal(await value(kv, ['c', 'a']), 1)
      t.equal(await value(kv, ['c', 'b']), undefined)
      t.equal(await value(kv, ['n', 'x']), undefined)
      t.equal(await kv.position(SCOPE, 'log'), null)
    })

    await guarantee('each commit of a call is decided by itself, after the earlier ones', async (t, { kv }) => {
      const key: KvKey = ['c', 'k']
      const answers = await kv.commit([
        { scope: SCOPE, check: [[key, null]], put: [{ key, value: 'first' }] },
        { scope: SCOPE, check: [[key, null]], put: [{ key, value: 'second' }] },
        { scope: 'p/1', check: [[key, null]], put: [{ key, value: 'other scope' }] },
        { scope: SCOPE, drop: [key] },
        { scope: SCOPE, check: [[key, null]], put: [{ key, value: 'third' }] },
        { scope: SCOPE, guard: { source: 's', expect: null, next: 1 } },
        { scope: SCOPE, guard: { source: 's', expect: 1, next: 2 } },
        { scope: SCOPE, guard: { source: 's', expect: 1, next: 3 } },
      ])
      t.same(answers, [true, false, true, true, true, true, true, false])
      t.equal(await value(kv, key), 'third')
      t.equal(await value(kv, key, 'p/1'), 'other scope')
      t.equal(await kv.position(SCOPE, 's'), 2)
      t.same(await kv.commit([]), [])
    })

    await guarantee(
      'a guard moves only from the position it expects, and a missing one is not zero',
      async (t, { kv }) => {
        const guard = (expect: number | null, next: number) =>
          one(kv, { scope: SCOPE, guard: { source: 'log', expect, next } })
        t.equal(await kv.position(SCOPE, 'log'), null)
        t.equal(await guard(0, 1), false)
        t.equal(await guard(null, 0), true)
        t.equal(await kv.position(SCOPE, 'log'), 0)
        t.equal(await guard(null, 1), false)
        t.equal(await guard(0, 7), true)
        t.equal(await guard(0, 8), false)
        t.equal(await kv.position(SCOPE, 'log'), 7)
        t.equal(await kv.position(SCOPE, 'other'), null)
        t.equal(await kv.position('p/1', 'log'), null)
      },
    )

    await guarantee('versions change with every write and never come back', async (t, opened) => {
      const key: KvKey = ['c', 'k']
      const seen = new Set<Version>()
      let kv = opened.kv
      for (let round = 0; round < 12; round += 1) {
        seen.add(await put(kv, key, 'same'))
        if (round % 3 === 0) await kv.commit([{ scope: SCOPE, drop: [key] }])
        if (round === 6 && opened.reopen) kv = await opened.reopen()
      }
      t.equal(seen.size, 12)
      const first = must((await kv.get(SCOPE, [key]))[0]).version
      await kv.commit([{ scope: SCOPE, drop: [key] }])
      await put(kv, key, 'again')
      t.equal(await one(kv, { scope: SCOPE, check: [[key, first]], drop: [key] }), false)
    })

    await guarantee('counters add up across commits and callers', async (t, { kv }) => {
      const key: KvKey = ['n', 'visits']
      await Promise.all(Array.from({ length: 50 }, (_, by) => kv.commit([{ scope: SCOPE, add: [[key, by]] }])))
      t.equal(await value(kv, key), 1_225)
      await kv.commit([
        {
          scope: SCOPE,
          add: [
            [key, -1_225],
            [key, 2],
            [['n', 'b'], 5],
          ],
        },
      ])
      t.equal(await value(kv, key), 2)
      t.equal(await value(kv, ['n', 'b']), 5)
      const { version } = must((await kv.get(SCOPE, [key]))[0])
      await kv.commit([{ scope: SCOPE, add: [[key, 0]] }])
      t.not(must((await kv.get(SCOPE, [key]))[0]).version, version)
      await put(kv, ['c', 'text'], 'not a counter')
      t.ok((await outcome(kv.commit([{ scope: SCOPE, add: [[['c', 'text'], 1]] }]))) instanceof TypeError)
      t.equal(await value(kv, ['c', 'text']), 'not a counter')
      t.ok((await outcome(kv.commit([{ scope: SCOPE, add: [[key, 1.5]] }]))) instanceof RangeError)
      await kv.commit([{ scope: SCOPE, drop: [key], add: [[key, 3]] }])
      t.equal(await value(kv, key), 3, 'a dropped counter starts from zero')
      const largest: Commit = { scope: SCOPE, put: [{ key: ['c', 'other'], value: 1 }], add: [[key, 2 ** 53 - 1]] }
      t.ok((await outcome(kv.commit([largest]))) instanceof RangeError, 'no more than a number can tell')
      const replaced: Commit = { scope: SCOPE, put: [{ key, value: 'text' }], add: [[key, 1]] }
      t.ok((await outcome(kv.commit([replaced]))) instanceof TypeError)
      t.same([await value(kv, key), await value(kv, ['c', 'other'])], [3, undefined], 'a refusal writes nothing')
      t.equal(await one(kv, { ...replaced, check: [[key, 1]] }), false, 'a failed check comes first')
      const puts = (id: string): Commit => ({ scope: SCOPE, put: [{ key: ['c', id], value: id }] })
      t.ok((await outcome(kv.commit([puts('before'), replaced, puts('after')]))) instanceof TypeError)
      t.same([await value(kv, ['c', 'before']), await value(kv, ['c', 'after'])], ['before', undefined])
    })

    await guarantee('a scan sees its collection only, whatever the names contain', async (t, { kv }) => {
      const hostile = [
        'a',
        'ab',
        'a/b',
        'a:b',
        'a\u0000',
        'a\u0000b',
        '\u0000',
        'é',
        '\u{1f600}',
        '\uffff',
        ' ',
        '{a}',
        'a*',
        '%',
      ]
      const places = ['p/1', 'p/11', 'p/1/1'].flatMap((scope) => hostile.map((collection) => ({ scope, collection })))
      for (const { scope, collection } of places) {
        const puts = hostile.map((id) => ({ key: [collection, id] as const, value: `${scope}|${collection}|${id}` }))
        await kv.commit([{ scope, put: puts }])
      }
      let wrong = 0
      for (const { scope, collection } of places) {
        const found = await kv.scan<string>(scope, collection, { limit: 1_000 })
        const ids = [...hostile].sort(byBytes)
        const fine =
          found.map(({ key }) => key[1]).join('|') === ids.join('|') &&
          found.every((entry, at) => entry.value === `${scope}|${collection}|${ids[at]}` && entry.key[0] === collection)
        if (!fine) wrong += 1
      }
      t.equal(wrong, 0)
      t.same(await kv.scan('p/1', 'b', { limit: 10 }), [])
    })

    await guarantee('a scan keeps its bounds in both directions', async (t, { kv }) => {
      const ids = ['a', 'b', 'b\u0000', 'bb', 'c', 'd']
      await kv.commit([{ scope: SCOPE, put: ids.map((id) => ({ key: ['c', id] as const, value: id })) }])
      const scan = async (range: object) =>
        (await kv.scan(SCOPE, 'c', { limit: 100, ...range })).map(({ key }) => key[1])
      for (const after of [undefined, 'a', 'aa', 'b', 'd', 'z']) {
        for (const upTo of [undefined, 'a', 'b', 'ba', 'd', 'z', '0']) {
          const expected = ids.filter((id) => (after === undefined || id > after) && (upTo === undefined || id <= upTo))
          const bounds = { ...(after === undefined ? {} : { after }), ...(upTo === undefined ? {} : { upTo }) }
          t.same(await scan(bounds), expected, `after ${after} up to ${upTo}`)
          t.same(await scan({ ...bounds, reverse: true }), [...expected].reverse(), 'the same, backwards')
        }
      }
      t.same(await scan({ limit: 2 }), ['a', 'b'])
      t.same(await scan({ limit: 2, reverse: true }), ['d', 'c'])
      t.same(await scan({ limit: 2, after: 'b' }), ['b\u0000', 'bb'])
    })

    await guarantee('a walk finds every entry of its collection, sorted or not', async (t, { kv }) => {
      const collections = ['c', 'cc', 'heap', 'heaps', ...UNSORTED]
      const ids = Array.from({ length: WALKED }, (_, id) => `${id}`).concat('*', '[', 'é', '/', '\\')
      for (const scope of ['p/1', 'p/11']) {
        for (const collection of collections) {
          await kv.commit([
            { scope, put: ids.map((id) => ({ key: [collection, id] as const, value: `${scope}${id}` })) },
          ])
        }
      }
      await kv.commit([
        { scope: 'p/1', drop: [['heap', '7']] },
        { scope: 'p/1', put: [{ key: ['heap', '8'], value: 'brief', ttlMs: 1 }] },
        { scope: 'p/1', add: [[['n', 'x'], 2]] },
      ])
      await sleep(20)
      const walk = async (scope: string, collection: string) => {
        const found = new Map<string, unknown>()
        for await (const { key, value } of kv.walk(scope, collection)) {
          if (key[0] !== collection) t.fail(`${key[0]} in ${collection}`)
          found.set(key[1], value)
        }
        return found
      }
      for (const collection of collections) {
        const expected = ids.filter((id) => collection !== 'heap' || (id !== '7' && id !== '8'))
        const found = await walk('p/1', collection)
        t.same([...found.keys()].sort(), expected.sort(), collection)
        t.ok([...found].every(([id, value]) => value === `p/1${id}`))
      }
      t.same([...(await walk('p/1', 'n'))], [['x', 2]])
      t.same([...(await walk('p/2', 'heap'))], [])
      t.ok((await outcome(kv.scan('p/1', 'heap', { limit: 1 }))) instanceof RangeError, 'no scan of what is unsorted')
    })

    await guarantee('what expired is gone for every reader, and may be made again', async (t, { kv }) => {
      await kv.commit([
        {
          scope: SCOPE,
          put: [
            { key: ['c', 'brief'], value: 1, ttlMs: BRIEF_MS },
            { key: ['c', 'renewed'], value: 1, ttlMs: BRIEF_MS },
            { key: ['c', 'long'], value: 1, ttlMs: 600_000 },
          ],
        },
      ])
      await kv.commit([{ scope: SCOPE, put: [{ key: ['c', 'renewed'], value: 2 }] }])
      t.equal(await value(kv, ['c', 'long']), 1, 'before it expires')
      await sleep(BRIEF_MS + 20)
      t.equal(await value(kv, ['c', 'brief']), undefined)
      t.same(
        (await kv.scan(SCOPE, 'c', { limit: 10 })).map(({ key }) => key[1]),
        ['long', 'renewed'],
      )
      t.equal(await value(kv, ['c', 'renewed']), 2, 'a later write without expiry stays')
      const again: Commit = { scope: SCOPE, check: [[['c', 'brief'], null]], put: [{ key: ['c', 'brief'], value: 3 }] }
      t.equal(await one(kv, again), true)
      await sleep(60)
      t.equal(await value(kv, ['c', 'brief']), 3)
      for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
        const refused = outcome(kv.commit([{ scope: SCOPE, put: [{ key: ['c', 'x'], value: 1, ttlMs }] }]))
        t.ok((await refused) instanceof RangeError, `${ttlMs} ms`)
      }
    })

    await guarantee('limits are enforced and leave nothing behind', async (t, { kv }) => {
      const fits = new Uint8Array(VALUE_BYTES_MAX)
      const many = (count: number) =>
        Array.from({ length: count }, (_, id) => ({ key: ['m', `${id}`] as const, value: id }))
      const refused: Commit[] = [
        {
          scope: SCOPE,
          put: [
            { key: ['c', 'a'], value: 1 },
            { key: ['c', 'b'], value: new Uint8Array(VALUE_BYTES_MAX + 1) },
          ],
        },
        { scope: SCOPE, put: [{ key: ['c', 'a'], value: 'x'.repeat(VALUE_BYTES_MAX) }] },
        { scope: SCOPE, put: many(COMMIT_KEYS_MAX + 1) },
        { scope: SCOPE, put: [{ key: ['c', 'i'.repeat(509)], value: 1 }] },
        { scope: SCOPE, put: [{ key: ['c', 'é'.repeat(255)], value: 1 }] },
        { scope: SCOPE, put: [{ key: ['', 'a'], value: 1 }] },
        { scope: SCOPE, put: [{ key: ['c', ''], value: 1 }] },
        { scope: SCOPE, put: [{ key: ['c', '\ud800'], value: 1 }] },
        { scope: '', put: [{ key: ['c', 'a'], value: 1 }] },
        { scope: 'p/{0}', put: [{ key: ['c', 'a'], value: 1 }] },
      ]
      for (const commit of refused) {
        const both = kv.commit([{ scope: SCOPE, put: [{ key: ['c', 'a'], value: 1 }] }, commit])
        t.ok((await outcome(both)) instanceof RangeError)
      }
      t.equal(await value(kv, ['c', 'a']), undefined, 'a refused call wrote nothing')
      t.equal(await one(kv, { scope: SCOPE, put: [{ key: ['c', 'a'], value: fits }] }), true)
      t.equal(((await value(kv, ['c', 'a'])) as Uint8Array).length, VALUE_BYTES_MAX)
      t.equal(await one(kv, { scope: SCOPE, put: many(COMMIT_KEYS_MAX) }), true)
      const longest = 'i'.repeat(512 - SCOPE.length - 1)
      t.equal(await one(kv, { scope: SCOPE, put: [{ key: ['c', longest], value: 'long' }] }), true)
      t.equal(await value(kv, ['c', longest]), 'long')
      t.ok((await outcome(kv.scan(SCOPE, 'c', { limit: 0 }))) instanceof RangeError)
    })

    await guarantee('of conflicting commits from many callers exactly one wins', async (t, { kv }) => {
      let version: Version | null = null
      const key: KvKey = ['c', 'contended']
      for (let round = 0; round < 10; round += 1) {
        const answers = await Promise.all(
          Array.from({ length: 8 }, (_, who) =>
            one(kv, {
              scope: SCOPE,
              check: [[key, version]],
              put: [
                { key, value: `${round}.${who}` },
                { key: ['winners', `${round}`], value: who },
              ],
            }),
          ),
        )
        t.equal(answers.filter(Boolean).length, 1)
        const [entry] = await kv.get(SCOPE, [key])
        t.equal(must(entry).value, `${round}.${answers.indexOf(true)}`)
        version = must(entry).version
      }
    })

    await guarantee('usage grows with what is stored', async (t, { kv }) => {
      // Nobody counts in the model.
      if (kv.usage === undefined) return
      const before = await kv.usage()
      const put = Array.from({ length: 4 }, (_, n) => ({
        key: ['c', `u${n}`] as const,
        value: new Uint8Array(500_000),
      }))
      await kv.commit([{ scope: SCOPE, put }])
      t.ok((await kv.usage()) >= before + 1_000_000)
    })

    await guarantee('after close every call fails', async (t, { kv }) => {
      const inFlight = one(kv, { scope: SCOPE, put: [{ key: ['c', 'a'], value: 1 }] })
      await kv.close()
      t.equal(await inFlight, true, 'what was taken is written')
      t.ok((await outcome(kv.get(SCOPE, [['c', 'a']]))) instanceof Unavailable)
      t.ok((await outcome(kv.scan(SCOPE, 'c', { limit: 1 }))) instanceof Unavailable)
      t.ok((await outcome(kv.commit([{ scope: SCOPE }]))) instanceof Unavailable)
      t.ok((await outcome(kv.walk(SCOPE, 'c')[Symbol.asyncIterator]().next())) instanceof Unavailable)
      await kv.close()
    })

    await guarantee('random use agrees with a small model', async (t, opened) => {
      const seed = testSeed()
      t.comment(`SEED=${seed}`)
      const random = rng(seed)
      let kv = opened.kv
      const scopes = ['p/0', 'w/a/live']
      const ids = Array.from({ length: 12 }, (_, id) => `id${id}`)
      const names = (scope: string, collection: string, id: string) => `${scope}\n${collection}\n${id}`
      const model = new Map<string, { value: unknown; version: Version }>()
      const positions = new Map<string, number>()
      for (let step = 0; step < STEPS; step += 1) {
        if (opened.reopen && random.chance(0.02)) kv = await opened.reopen()
        const commits: Commit[] = []
        const expected: boolean[] = []
        const touched = new Set<string>()
        const next = new Map<string, unknown>([...model].map(([name, { value }]) => [name, value]))
        for (let count = 1 + random.int(4); count > 0; count -= 1) {
          const scope = random.pick(scopes)
          const fresh = ids.filter((id) => !touched.has(names(scope, 'c', id)))
          const checked = random.shuffle(fresh).slice(0, random.int(3))
          const check = checked.map((id) => {
            const version = model.get(names(scope, 'c', id))?.version ?? null
            return [['c', id] as const, random.chance(0.8) ? version : random.chance(0.5) ? null : 999_999] as const
          })
          const expect = random.chance(0.8) ? (positions.get(scope) ?? null) : random.int(5)
          const guard = random.chance(0.5) ? { source: 'log', expect, next: random.int(1_000) } : null
          const [dropped, ...written] = random.shuffle(ids).slice(0, 1 + random.int(4))
          const put = written.map((id) => ({
            key: ['c', id] as const,
            value: { step, pad: 'x'.repeat(random.int(3_000)) },
          }))
          const drop = random.chance(0.5) ? [['c', must(dropped)] as const] : []
          const add = random.chance(0.5) ? [[['n', random.pick(ids)] as const, random.int(100)] as const] : []
          const ok =
            check.every(([[, id], version]) => (model.get(names(scope, 'c', id))?.version ?? null) === version) &&
            (!guard || (positions.get(scope) ?? null) === guard.expect)
          commits.push({ scope, check, put, drop, add, ...(guard ? { guard } : {}) })
          expected.push(ok)
          if (!ok) continue
          if (guard) positions.set(scope, guard.next)
          for (const { key, value } of put) next.set(names(scope, 'c', key[1]), value)
          for (const [, id] of drop) next.delete(names(scope, 'c', id))
          for (const [[, id], by] of add) {
            const name = names(scope, 'n', id)
            next.set(name, ((next.get(name) as number | undefined) ?? 0) + by)
          }
          for (const id of [...written, must(dropped)]) touched.add(names(scope, 'c', id))
        }
        const answers = await kv.commit(commits)
        if (answers.join() !== expected.join()) t.same(answers, expected, `step ${step}`)
        model.clear()
        for (const scope of scopes) {
          for (const collection of ['c', 'n']) {
            for (const { key, value, version } of await kv.scan(scope, collection, { limit: 100 })) {
              model.set(names(scope, ...key), { value, version })
            }
          }
          if ((await kv.position(scope, 'log')) !== (positions.get(scope) ?? null)) t.fail(`position at step ${step}`)
        }
        const found = new Map([...model].map(([name, { value }]) => [name, value]))
        const differs =
          found.size !== next.size ||
          [...next].some(([name, value]) => JSON.stringify(found.get(name)) !== JSON.stringify(value))
        if (differs) t.same(found, next, `step ${step}`)
      }
      t.pass(`${STEPS} steps`)
    })
  })
}
