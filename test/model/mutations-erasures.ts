// Erasures broken on purpose, as the rules of the protocol are in mutations.ts.

import { erasureOf } from '../../src/events/record.ts'
import type { Commit, KvEntry } from '../../src/kv/kv.ts'
import { ERASED } from '../../src/records/erasures.ts'
import { VELOCITY } from '../../src/records/partitions.ts'
import { packHeldVisitor, unpackHeldVisitor } from '../../src/records/visitors.ts'
import { type Mutation, NOTHING, onDecider, onKv, withoutGuard } from './mutations.ts'
import type { Ports, Tamper } from './process.ts'

const options = { erasing: true } as const

const announced = ({ put = [] }: Commit) => [...put].filter(({ key }) => key[0] === 'erasing')
const isAnnouncement = (commit: Commit) => announced(commit).length > 0

/** Whether the decision an announcement is of is in the log already. */
async function isDecided(commit: Commit, { log }: Ports): Promise<boolean> {
  const [announcement] = announced(commit)
  const partition = Number(commit.scope.slice('p/'.length))
  const records = await log.read('events', partition, 0, { recordsMax: 10_000, bytesMax: 2 ** 30, waitMsMax: 0 })
  return records.some(({ bytes }) => erasureOf(bytes)?.erasureId === announcement?.value)
}

/** Announcements without their guard, of decisions that are in the log or of those that are not yet. */
const unguardedAnnouncements = (decided: boolean): Tamper =>
  onKv('engine', (kv, raw) => ({
    async commit(commits) {
      const [first] = commits
      if (first === undefined || !isAnnouncement(first) || (await isDecided(first, raw)) !== decided)
        return kv.commit(commits)
      return kv.commit(commits.map(withoutGuard))
    },
  }))

const withTombstones = (commit: Commit): Commit => ({
  ...commit,
  put: [
    ...(commit.put ?? []),
    ...announced(commit).map(({ key, value }) => ({
      key: [ERASED, key[1]] as const,
      value: { erasureId: value, at: 0 },
    })),
  ],
})

const withOldCounters = (commit: Commit): Commit => {
  const put = [...(commit.put ?? [])]
  const isErasing = put.some(({ key }) => key[0] === ERASED)
  return isErasing ? { ...commit, put: put.filter(({ key }) => key[0] !== VELOCITY) } : commit
}

const withLatestKeys = (commit: Commit): Commit => ({
  ...commit,
  put: Array.from(commit.put ?? [], (put) => {
    if (put.key[0] !== 'visitor') return put
    const { keys, state, earlierKeys: _, ...more } = unpackHeldVisitor(put.value as Uint8Array)
    return { ...put, value: packHeldVisitor(keys, state, more) }
  }),
})

const announcedLate: Tamper = {
  ports(of, ports) {
    if (of !== 'engine') return ports
    const { kv, log } = ports
    let late: Commit[] = []
    return {
      ...ports,
      kv: {
        ...kv,
        async commit(commits) {
          if (!commits.some(isAnnouncement)) return kv.commit(commits)
          late.push(...commits.map(withoutGuard))
          return commits.map(() => true)
        },
      },
      log: {
        ...log,
        async append(topic, ...rest) {
          const seq = await log.append(topic, ...rest)
          const due = topic === 'events' ? late : []
          if (due.length > 0) late = []
          if (due.length > 0) await kv.commit(due)
          return seq
        },
      },
    }
  },
}

export const ERASURE_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'R1',
    what: 'a take-over adopts everything but erasures',
    seed: 94,
    from: 90,
    options,
    tamper: onDecider((decider) => ({
      adopt: (partition, records, load) =>
        decider.adopt(
          partition,
          records.map((bytes) => (erasureOf(bytes) === null ? bytes : NOTHING)),
          load,
        ),
    })),
  },
  {
    rule: 'R3',
    what: 'an erasure is answered before the checkpoint without the visitor is stored',
    seed: 2,
    options,
    tamper: onKv('engine', (kv) => ({ commit: (commits) => kv.commit(commits.map(withTombstones)) })),
  },
  {
    rule: 'R7',
    what: 'the sink deletes nothing of an erased visitor',
    seed: 3,
    options,
    tamper: {
      ports: (of, ports) =>
        of === 'sink' ? { ...ports, clickhouse: { ...ports.clickhouse, patch: async () => undefined } } : ports,
    },
  },
  { rule: 'erasures', what: 'they are announced after the append', seed: 32, options, tamper: announcedLate },
  {
    rule: 'erasures',
    what: 'they are announced wherever the sink is',
    seed: 1497,
    from: 1400,
    options,
    tamper: unguardedAnnouncements(false),
  },
  {
    rule: 'erasures',
    what: 'those found at a take-over are announced wherever the sink is',
    seed: 1643,
    from: 1500,
    options,
    tamper: unguardedAnnouncements(true),
  },
  {
    rule: 'erasures',
    what: 'a visitor is known by the keys of its latest look alone',
    seed: 7,
    options: { erasing: true, moving: true },
    tamper: onKv('engine', (kv) => ({ commit: (commits) => kv.commit(commits.map(withLatestKeys)) })),
  },
  {
    rule: 'erasures',
    what: 'a visitor is erased and its address and account are not stored without it',
    seed: 2,
    options,
    tamper: onKv('engine', (kv) => ({ commit: (commits) => kv.commit(commits.map(withOldCounters)) })),
  },
  {
    rule: 'erasures',
    what: 'tombstones are not read when an old token comes',
    seed: 7,
    options,
    tamper: onDecider((decider) => ({
      decide: (partition, batch, poisoned, load) =>
        decider.decide(partition, batch, poisoned, async (wanted) =>
          (await load(wanted)).map((loaded) => (loaded.kind === ERASED ? { ...loaded, value: null } : loaded)),
        ),
    })),
  },
  {
    rule: 'erasures',
    what: 'an event is read without looking for a tombstone',
    seed: 2,
    options,
    tamper: onKv('reads', (kv) => ({
      get: async <T>(...args: Parameters<typeof kv.get>) =>
        (await kv.get<T>(...args)).map((entry): KvEntry<T> | null => (entry?.key[0] === ERASED ? null : entry)),
    })),
  },
  {
    rule: 'erasures',
    what: 'lists do not look at what is announced',
    seed: 1,
    options,
    tamper: onKv('reads', (kv) => ({
      scan: async (scope, collection, range) => (collection === 'erasing' ? [] : kv.scan(scope, collection, range)),
    })),
  },
]
