// Membership in lists as threads see it: never wrong about an entry, whatever was added, removed, expired or moved to a new
// table meanwhile.

import t from 'tap'
import { canonicalIp } from '../../src/domain/ip.ts'
import { type ListType, normaliseEntry } from '../../src/domain/list.ts'
import { createListKeys } from '../../src/engine/list-keys.ts'
import { type ListReplica, loadReplica } from '../../src/engine/list-replica.ts'
import { createListViews, type ListNews } from '../../src/engine/list-views.ts'
import { createDigest } from '../../src/lib/digest.ts'
import { GONE, makeDigestTable, NEVER_EXPIRES, openDigestTable } from '../../src/lib/digest-table.ts'
import { sized } from '../helpers/depth.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
const KEY = [1, 2, 3, 4]
const TEXTS = sized({ quick: 2_000, usual: 5_000, long: 20_000 })
const TABLE_SIZES = [0, 1, 11, 12, 1_000, sized({ quick: 3_000, usual: 20_000, long: 120_000 })]
const ROUNDS = sized({ usual: 1, long: 3 })
/** Of how many values entries are drawn: few are met again and again, many fill a table. */
const SPREADS = [8, 200, sized({ quick: 1_000, usual: 3_000, long: 6_000 })]
const STEPS = sized({ quick: 20, usual: 40, long: 60 })

t.test('digests of different texts differ, and depend on the key', async (t) => {
  const digest = createDigest(KEY)
  const other = createDigest([1, 2, 3, 5])
  const seen = new Set<string>()
  const texts = ['', '\0', '\0\0', 'a', 'a\0', '\0a', 'ab', 'ba', 'abc', 'aB', 'ä', '\ud800', '\u{1f600}', ' a', 'a ']
  for (let i = 0; i < TEXTS; i++) texts.push(`pv_${i}`)
  for (const text of texts) {
    digest.text(text)
    seen.add([...digest.words].join())
    other.text(text)
    if (other.words[0] === digest.words[0] && other.words[1] === digest.words[1])
      t.fail(`the key means nothing: ${text}`)
  }
  t.equal(seen.size, texts.length)
})

t.test('a table finds what it holds and nothing else, at every size', async (t) => {
  const random = rng(seed)
  for (const size of TABLE_SIZES) {
    const table = makeDigestTable(size)
    const held = new Map<string, number>()
    const draw = () => [random.int(2 ** 32) | 0, random.int(2 ** 32) | 0, random.int(2 ** 32) | 0] as const
    for (let i = 0; i < size; i++) {
      const words = draw()
      const expiresAt = random.pick([NEVER_EXPIRES, GONE, 1_800_000_000 + i])
      if (!table.set(...words, expiresAt)) t.fail('there is room for as many as asked for')
      held.set(words.join(), expiresAt)
    }
    const shared = openDigestTable(table.memory)
    let wrong = 0
    for (const [text, expiresAt] of held) {
      const [a = 0, b = 0, c = 0] = text.split(',').map(Number)
      if (shared.find(a, b, c) !== expiresAt) wrong++
    }
    for (let i = 0; i < TEXTS; i++) {
      const words = draw()
      if (shared.find(...words) !== (held.get(words.join()) ?? 0)) wrong++
    }
    t.equal(wrong, 0, `${size}`)
    t.equal(shared.size(), held.size)
    let room = 0
    while (room < 200_000 && table.set(...draw(), 5)) room++
    t.ok(room < 200_000, 'a table that is full says so')
  }
})

/** Plain membership, written down as plainly as possible. */
function naive(type: ListType, entries: ReadonlyMap<string, number | null>, value: string, nowMs: number): boolean {
  const bitsOf = (text: string): string | null => {
    const [address = '', length] = text.split('/')
    const canonical = canonicalIp(address)
    if (canonical === null) return null
    const bits = canonical.includes(':')
      ? `6${expand(canonical)}`
      : `4${canonical
          .split('.')
          .map((part) => Number(part).toString(2).padStart(8, '0'))
          .join('')}`
    return bits.slice(0, 1 + (length === undefined ? bits.length : Number(length)))
  }
  if (type === 'ip' && canonicalIp(value) !== value) return false
  const asked = type === 'ip' ? bitsOf(value) : value
  for (const [entry, expiresAt] of entries) {
    if (expiresAt !== null && Math.ceil(expiresAt / 1_000) <= nowMs / 1_000) continue
    if (type === 'ip' ? asked?.startsWith(bitsOf(entry) ?? 'x') : entry === asked) return true
  }
  return false
}

function expand(canonical: string): string {
  const [head = '', tail] = canonical.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const all =
    tail === undefined
      ? groups(head)
      : [...groups(head), ...new Array(8 - groups(head).length - groups(tail).length).fill('0'), ...groups(tail)]
  return all.map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0')).join('')
}

/** Few values, so that they are met again; of addresses ranges within ranges. */
function drawValue(random: Rng, type: ListType, spread: number): string {
  const n = random.int(spread)
  if (type === 'visitor') return `pv_${n}`
  if (type === 'email') return `u${n}@b.example`
  const text = random.pick([
    `10.${n % 4}.${n % 8}.${n % 256}`,
    `10.${n % 4}.${n % 8}.0/${random.pick([8, 9, 16, 23, 24, 30, 32])}`,
    `2001:db8:${(n % 4).toString(16)}::${n % 16}`,
    `2001:db8:${(n % 4).toString(16)}::/${random.pick([0, 32, 33, 47, 48, 64, 127])}`,
  ])
  return normaliseEntry('ip', text) as string
}

for (const type of ['visitor', 'email', 'ip'] as const) {
  t.test(`threads agree with a plain set about a list of type ${type}`, async (t) => {
    const random = rng(seed)
    for (const [round, spread] of Array.from({ length: ROUNDS }, () => SPREADS)
      .flat()
      .entries()) {
      let nowMs = 1_800_000_000_000
      let generation = 0
      const clock = { now: () => nowMs, sleep: () => new Promise<void>((resolve) => setImmediate(resolve)) }
      const keys = createListKeys(KEY)
      const about = { id: 'lst_a', name: 'List', type, keys, clock, nextGeneration: () => ++generation }
      const entries = new Map<string, number | null>()
      const expiry = () => (random.chance(0.5) ? null : nowMs + 500 + random.int(20_000))
      const load = loadReplica(about, random.int(10))
      for (let i = 0; i < random.int(spread * 2); i++) {
        const entry = { value: drawValue(random, type, spread), expiresAt: expiry() }
        entries.set(entry.value, entry.expiresAt)
        load.add([entry])
      }
      const replica: ListReplica = load.finish()
      const threads = Array.from({ length: 2 }, () => ({
        views: createListViews(() => nowMs),
        generation: 0,
        changes: 0,
      }))
      const tell = (thread: (typeof threads)[number]) => {
        const isNew = thread.generation !== replica.generation()
        const changes = replica.changes().slice(isNew ? 0 : thread.changes)
        const part = { id: 'lst_a', name: 'List', type, changes, ...(isNew ? { base: replica.base() } : {}) }
        const news: ListNews = { workspace: 'ws', env: 'live', key: KEY, parts: [part], ids: null }
        thread.views.take([structuredClone(news)])
        thread.generation = replica.generation()
        thread.changes = replica.changes().length
      }
      let tidying: Promise<void> = Promise.resolve()
      let wrong = 0
      for (let step = 0; step < STEPS; step++) {
        const changed = Array.from({ length: random.int(random.pick([3, 300])) }, () => {
          const value = drawValue(random, type, spread)
          return { value, expiresAt: random.chance(0.4) ? ('gone' as const) : expiry() }
        })
        for (const { value, expiresAt } of changed) {
          if (expiresAt === 'gone') entries.delete(value)
          else entries.set(value, expiresAt)
        }
        replica.apply(changed)
        if (random.chance(0.5)) tidying = replica.tidy()
        if (random.chance(0.3)) await tidying
        nowMs += random.int(3_000)
        for (const thread of threads) {
          tell(thread)
          const member = thread.views.member('ws', 'live')
          for (let i = 0; i < 40; i++) {
            const value = random.chance(0.05) ? '2001:DB8::1' : drawValue(random, type, spread)
            if (member('list', value) !== naive(type, entries, value, nowMs)) {
              wrong++
              t.comment(`${value} at step ${step} of round ${round}`)
            }
          }
        }
      }
      await tidying
      t.equal(wrong, 0)
    }
    t.equal(createListViews(() => 0).member('ws', 'live')('list', 'x'), null, 'there is no such list')
  })
}
