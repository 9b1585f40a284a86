// What membership in a large list costs a decision: nanoseconds per lookup of freshly decoded texts that are on it, and that are
// not, and the memory it takes. `npm run bench -- lists [entries] [seed]`.

import { createListKeys } from '../src/engine/list-keys.ts'
import { loadReplica } from '../src/engine/list-replica.ts'
import { createListViews } from '../src/engine/list-views.ts'
import { openDigestTable } from '../src/lib/digest-table.ts'
import { rng } from '../test/helpers/rng.ts'

export interface ListsMeasured {
  readonly entries: number
  readonly loadMs: number
  readonly hitNs: number
  readonly missNs: number
  /** Of the same texts, read once without being asked for: what the measure itself costs. */
  readonly decodeNs: number
  readonly filterMbPerMillion: number
  readonly placesMbPerMillion: number
}

const LOOKUPS = 200_000
const ROUNDS = 7
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function visitorIds(count: number, seed: number): Buffer[] {
  const random = rng(seed)
  return Array.from({ length: count }, () =>
    Buffer.from(`pv_${Array.from({ length: 20 }, () => ALPHABET[random.int(62)]).join('')}`),
  )
}

const cpuUs = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** CPU of the best of some rounds: the wall clock of a shared machine tells about its neighbours. */
function bestNs(ids: readonly Buffer[], ask: (text: string) => void): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const from = cpuUs()
    for (const id of ids) ask(id.toString('latin1'))
    best = Math.min(best, ((cpuUs() - from) * 1e3) / ids.length)
  }
  return best
}

export function measureLists(entries: number, seed: number): ListsMeasured {
  const random = rng(seed)
  const key = Array.from({ length: 4 }, () => random.int(2 ** 32) | 0)
  const ids = visitorIds(entries, seed)
  const clock = { now: Date.now, sleep: async () => undefined }
  const about = { id: 'lst_a', name: 'list', type: 'visitor', keys: createListKeys(key), clock } as const
  const from = cpuUs()
  const load = loadReplica({ ...about, nextGeneration: () => 1 }, entries)
  load.add(ids.map((id) => ({ value: id.toString('latin1'), expiresAt: null })))
  const replica = load.finish()
  const loadMs = (cpuUs() - from) / 1_000
  const views = createListViews(Date.now)
  const part = { id: 'lst_a', name: 'list', type: 'visitor', base: replica.base(), changes: [] } as const
  views.take([{ workspace: 'ws', env: 'live', key, parts: [part], ids: null }])
  const member = views.member('ws', 'live')

  const hits = Array.from({ length: LOOKUPS }, () => Buffer.from(random.pick(ids)))
  const misses = visitorIds(LOOKUPS, seed + 1)
  let found = 0
  let length = 0
  const decodeNs = bestNs(misses, (text) => {
    length += text.charCodeAt(5)
  })
  const ask = (text: string) => {
    if (member('list', text) === true) found++
  }
  const hitNs = bestNs(hits, ask)
  const isRight = found === hits.length * ROUNDS
  const missNs = bestNs(misses, ask)
  if (!isRight || found !== hits.length * ROUNDS || length === 0) throw new Error('a lookup was wrong')
  const { places, filter } = openDigestTable(replica.base().memory).bytes()
  const perMillion = (bytes: number) => bytes / entries
  return {
    entries,
    loadMs,
    hitNs,
    missNs,
    decodeNs,
    filterMbPerMillion: perMillion(filter),
    placesMbPerMillion: perMillion(places),
  }
}

export function printLists(measured: ListsMeasured): void {
  const { entries, loadMs, hitNs, missNs, decodeNs, filterMbPerMillion, placesMbPerMillion } = measured
  console.log(
    `${entries} entries: hit ${hitNs.toFixed(0)} ns, miss ${missNs.toFixed(0)} ns (decoding the text alone ` +
      `${decodeNs.toFixed(0)} ns) | filter ${filterMbPerMillion.toFixed(2)} MB and table ${placesMbPerMillion.toFixed(1)} MB ` +
      `per million | built in ${loadMs.toFixed(0)} ms`,
  )
}

const isMain = process.argv[2] === 'lists'
if (isMain) {
  const most = Number(process.argv[3] ?? 1_000_000)
  const seed = Number(process.argv[4] ?? 1)
  console.log(`seed ${seed}, visitor ids of 23 characters`)
  for (const entries of [1_000, 99_999, 1_000_000].filter((count) => count <= most)) {
    printLists(measureLists(entries, seed))
  }
}
