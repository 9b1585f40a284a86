// Whoever remembers the owners of keys lets nobody in whom a look into the directory would keep out, and keeps nobody out either.

import t, { type Test } from 'tap'
import { makeKey } from '../../src/domain/keys.ts'
import type { ApiKey, Workspace } from '../../src/domain/workspace.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { openAuth } from '../../src/records/auth.ts'
import { KEYS_STALE_MS, openKeyDirectory } from '../../src/records/key-directory.ts'
import { KEY, keyDigest } from '../../src/records/keys.ts'
import { WORKSPACE } from '../../src/records/workspaces.ts'
import { random } from '../helpers/control-plane.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const START_MS = Date.UTC(2026, 10, 22)
const BASE: Workspace = {
  id: 'ws_1',
  name: 'one',
  plan: 'pro',
  apiVersion: '2026-11-01',
  settings: { clientResult: 'id' },
  tokenSecret: 'a-secret-of-a-workspace-0123456789',
  createdAt: START_MS,
}

/** A directory over keys and workspaces that the test changes; nobody tells it, and it never looks by itself. */
async function openKeys(t: Test) {
  let time = 0
  const keys = new Map<string, ApiKey>()
  const workspaces = new Map([[BASE.id, BASE]])
  const clock: Clock = {
    now: () => START_MS + time,
    monotonic: () => time,
    sleep: (_ms, signal) => new Promise((wake) => signal?.addEventListener('abort', () => wake())),
  }
  const stored = (collection: string): unknown[] =>
    collection === KEY ? [...keys.values()] : collection === WORKSPACE ? [...workspaces.values()] : []
  const directory = await openKeyDirectory({
    kv: {
      get: async (_scope, wanted) => wanted.map(() => null),
      scan: async (_scope, collection) =>
        stored(collection).map((value, i) => ({ key: [collection, String(i)], value: value as never, version: 1 })),
      position: async () => 0,
    },
    log: { last: async () => 0 },
    bus: { publish() {}, subscribe: () => () => {}, close: async () => {}, isLossy: true },
    clock,
    sealer: null,
    report: (error) => t.fail(String(error)),
  })
  t.teardown(() => directory.close())
  const auth = openAuth(directory, clock, Number.POSITIVE_INFINITY)

  function outcomeOf(asked: Pick<typeof auth, 'authenticate'>, text: string): string {
    try {
      const { key, workspace, env } = asked.authenticate(text, '203.0.113.1')
      return `${key.id} ${key.label} ${workspace.plan} ${env}`
    } catch (error) {
      return (error as { readonly code: string }).code
    }
  }

  return {
    keys,
    workspaces,
    directory,
    make(id: string, more: Partial<ApiKey> = {}): string {
      const text = makeKey('secret', 'live', random)
      keys.set(id, {
        id,
        workspace: BASE.id,
        env: 'live',
        kind: 'secret',
        digest: keyDigest(text),
        last4: text.slice(-4),
        label: null,
        scopes: null,
        origins: null,
        createdAt: START_MS,
        expiresAt: null,
        revokedAt: null,
        ...more,
      })
      return text
    },
    change(id: string, more: Partial<ApiKey>): void {
      keys.set(id, { ...(keys.get(id) as ApiKey), ...more })
    },
    later: (ms: number) => {
      time += ms
    },
    outcome: (text: string) => outcomeOf(auth, text),
    /** What somebody says who remembers nothing. */
    afresh: (text: string) => outcomeOf(openAuth(directory, clock, Number.POSITIVE_INFINITY), text),
  }
}

t.test('a key that was used is refused as soon as the directory knows that it is revoked or replaced', async (t) => {
  const { make, change, directory, outcome, keys } = await openKeys(t)
  const [revoked, gone] = [make('key_1'), make('key_2')]
  await directory.reload()
  for (const text of [revoked, gone, revoked]) t.match(outcome(text), /^key_. null pro live$/)
  change('key_1', { revokedAt: START_MS })
  keys.delete('key_2')
  const next = make('key_3')
  await directory.reload()
  t.equal(outcome(revoked), 'invalid_api_key')
  t.equal(outcome(gone), 'invalid_api_key')
  t.equal(outcome(next), 'key_3 null pro live')
})

t.test('a key that was used ends at its time, whether or not anything is read again', async (t) => {
  const { make, directory, outcome, later } = await openKeys(t)
  const text = make('key_1', { expiresAt: START_MS + 1_000 })
  await directory.reload()
  later(999)
  t.equal(outcome(text), 'key_1 null pro live')
  later(1)
  t.equal(outcome(text), 'invalid_api_key')
})

t.test('a change of plan or key is seen with the next request after it was read', async (t) => {
  const { make, change, directory, outcome, workspaces } = await openKeys(t)
  const text = make('key_1')
  await directory.reload()
  t.equal(outcome(text), 'key_1 null pro live')
  workspaces.set(BASE.id, { ...BASE, plan: 'starter' })
  change('key_1', { label: 'renamed' })
  await directory.reload()
  t.equal(outcome(text), 'key_1 renamed starter live')
  workspaces.clear()
  await directory.reload()
  t.equal(outcome(text), 'invalid_api_key', 'a key of no workspace is nobody’s')
})

t.test('of a key that was used old knowledge is as little worth as of any other', async (t) => {
  const { make, directory, outcome, later } = await openKeys(t)
  const text = make('key_1')
  await directory.reload()
  t.equal(outcome(text), 'key_1 null pro live')
  later(KEYS_STALE_MS)
  t.equal(outcome(text), 'unavailable')
  t.equal(outcome(`${text}x`), 'invalid_api_key', 'what is no key needs no knowledge')
  await directory.reload()
  t.equal(outcome(text), 'key_1 null pro live')
})

t.test('who remembers answers as who asks each time, whatever happens to keys in between', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const { keys, make, change, directory, outcome, afresh, later, workspaces } = await openKeys(t)
  const texts: string[] = ['sk_live_short', makeKey('secret', 'live', random)]
  for (let i = 0; i < 400; i++) {
    const id = `key_${r.int(20)}`
    const what = r.int(8)
    if (what === 0) texts.push(make(id, { expiresAt: r.chance(0.5) ? null : START_MS + r.int(20_000) }))
    else if (what === 1 && keys.size > 6) change(r.pick([...keys.keys()]), { revokedAt: START_MS })
    else if (what === 2) workspaces.set(BASE.id, { ...BASE, plan: r.pick(['starter', 'pro', 'enterprise']) })
    else if (what === 3) await directory.reload()
    else if (what === 4) later(r.int(1_000))
    for (const text of texts) if (outcome(text) !== afresh(text)) t.fail(`${i}: ${outcome(text)}, not ${afresh(text)}`)
  }
  t.ok(texts.length > 8)
})
