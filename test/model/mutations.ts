// One broken protocol per rule, made only by decorating what the product code is given: the proof that the checks can fail.

import type { Decider } from '../../src/engine/decider.ts'
import { encodeEventsRecord } from '../../src/events/record.ts'
import type { Commit, Kv, KvKey, Scope } from '../../src/kv/kv.ts'
import { unpack } from '../../src/lib/codec.ts'
import type { Log } from '../../src/log/log.ts'
import { publishHint } from '../../src/records/hints.ts'
import { ENGINE_POSITION, SINK_MARK, SINK_POSITION, SINK_REPEATED } from '../../src/records/partitions.ts'
import { CHANGES_SOURCE } from '../../src/records/scopes.ts'
import type { Ports, Role, Tamper } from './process.ts'
import type { WorldOptions } from './world.ts'

export interface Mutation {
  readonly rule: string
  readonly what: string
  readonly tamper: Tamper
  readonly options?: WorldOptions
  /** Catches it, and takes few steps. */
  readonly seed: number
  /** Where a search begins; default 1. */
  readonly from?: number
}

export const onLog = (role: Role, change: (log: Log, ports: Ports, raw: Ports) => Partial<Log>): Tamper => ({
  ports: (of, ports, raw) =>
    of === role ? { ...ports, log: { ...ports.log, ...change(ports.log, ports, raw) } } : ports,
})
export const onKv = (role: Role, change: (kv: Kv, raw: Ports) => Partial<Kv>): Tamper => ({
  ports: (of, ports, raw) => (of === role ? { ...ports, kv: { ...ports.kv, ...change(ports.kv, raw) } } : ports),
})
export const onDecider = (change: (decider: Decider) => Partial<Decider>): Tamper => ({
  decider: (decider) => ({ ...decider, ...change(decider) }),
})

/** Each commit as `change` makes it, also of those that are decided together. */
const eachCommit = (change: (commit: Commit, kv: Kv) => Commit | Promise<Commit>) => (kv: Kv) => {
  const changed = (commits: readonly Commit[]) => Promise.all(commits.map((commit) => change(commit, kv)))
  const { commitTogether } = kv
  return {
    commit: async (commits: readonly Commit[]) => kv.commit(await changed(commits)),
    ...(commitTogether && {
      commitTogether: async (commits: readonly Commit[]) => commitTogether(await changed(commits)),
    }),
  }
}

/** Commits of which each is decided by itself. */
const apart =
  (isMeant: (commits: readonly Commit[]) => boolean, sum: (answers: readonly boolean[]) => boolean) =>
  ({ commit, commitTogether }: Kv) => ({
    ...(commitTogether && {
      async commitTogether(commits: readonly Commit[]) {
        if (!isMeant(commits)) return commitTogether(commits)
        const answers: boolean[] = []
        for (const one of commits) answers.push(...(await commit([one])))
        return sum(answers)
      },
    }),
  })

/** A guard that expects whatever is there. */
const unguarded = (source: string) =>
  eachCommit(async (commit, kv) =>
    commit.guard?.source === source
      ? { ...commit, guard: { ...commit.guard, expect: await kv.position(commit.scope, source) } }
      : commit,
  )

const isMark = ({ put = [] }: Commit) => [...put][0]?.key === SINK_MARK
const withoutGroup = <T>(mark: T): T => ({ ...mark, group: undefined })
const isNoNote = ([key]: NonNullable<Commit['check']>[number]) => key !== SINK_REPEATED
export const NOTHING = encodeEventsRecord({ from: 0, to: 0, items: [], rows: new Uint8Array(0) })

export const MUTATIONS: readonly Mutation[] = [
  {
    rule: 'R1',
    what: 'decisions found at a take-over are not applied',
    seed: 15,
    tamper: onDecider((decider) => ({
      adopt: (partition, _records, load) => decider.adopt(partition, [NOTHING], load),
    })),
  },
  {
    rule: 'R1',
    what: 'answers leave before the decisions are appended',
    seed: 1,
    tamper: {
      decider: (decider, reply) => ({
        ...decider,
        async decide(...args) {
          const result = await decider.decide(...args)
          reply(result.decided.replies, result.decided.replays)
          return result
        },
      }),
    },
  },
  {
    rule: 'R2',
    what: 'the append has no fence',
    seed: 9,
    tamper: onLog('engine', (log) => ({
      append: (topic, partition, records) => log.append(topic, partition, records),
    })),
  },
  {
    rule: 'R2',
    what: 'decisions outlive the identifications they were made on',
    seed: 1001,
    from: 880,
    tamper: onLog('engine', (log) => ({
      append: (topic, partition, records, { basis: _, ...opts } = {}) => log.append(topic, partition, records, opts),
      basis: () => 0,
    })),
  },
  { rule: 'R2', what: 'the checkpoint has no guard', seed: 15, tamper: onKv('engine', unguarded(ENGINE_POSITION)) },
  {
    rule: 'R3',
    what: 'a missing position reads as zero',
    seed: 128,
    from: 70,
    tamper: onKv('engine', (kv) => ({ position: async (scope, source) => (await kv.position(scope, source)) ?? 0 })),
  },
  {
    rule: 'R3',
    what: 'a checkpoint moves the position and forgets the records',
    seed: 1,
    tamper: onKv('engine', (kv) => ({
      commit: (commits) => kv.commit(commits.map(({ scope, guard }) => ({ scope, ...(guard ? { guard } : {}) }))),
    })),
  },
  {
    rule: 'R3',
    what: 'who reads a visitor does not ask the log what was decided',
    seed: 6,
    tamper: onLog('reads', () => ({ last: async () => 0 })),
    options: { reading: true },
  },
  {
    rule: 'R4',
    what: 'the log is trimmed to its end',
    seed: 2,
    tamper: onLog('trim', (log, _ports, raw) => ({
      trim: async (topic, partition) => log.trim(topic, partition, await raw.log.last(topic, partition)),
    })),
  },
  {
    rule: 'R4',
    what: 'what cannot be decided leaves no dead letter',
    seed: 5,
    tamper: onLog('engine', (log) => ({
      append: async (topic, ...rest) => (topic === 'dead' ? 1 : log.append(topic, ...rest)),
    })),
  },
  {
    rule: 'R4',
    what: 'failed attempts are not counted',
    seed: 34,
    from: 15,
    tamper: onDecider((decider) => ({
      decide: (partition, batch, _poisoned, load) => decider.decide(partition, batch, [], load),
    })),
  },
  {
    rule: 'R5',
    what: 'identifications go to another partition than the home',
    seed: 1,
    tamper: onLog('ingress', (log) => ({
      append: (topic, partition, records) => log.append(topic, 1 - partition, records),
    })),
  },
  {
    rule: 'R6',
    what: 'nonces are forgotten when a partition changes hands',
    seed: 3,
    tamper: onDecider((decider) => ({ open: (partition) => decider.open(partition, []) })),
  },
  {
    rule: 'R7',
    what: 'no mark is left before an insert',
    seed: 25,
    tamper: onKv('sink', ({ commit, commitTogether }) => ({
      commit: async (commits) => (commits.some(isMark) ? commits.map(() => true) : commit(commits)),
      ...(commitTogether && {
        commitTogether: async (commits: readonly Commit[]) => commits.some(isMark) || commitTogether(commits),
      }),
    })),
  },
  {
    rule: 'R7',
    what: 'a mark may be based on a position of the past',
    seed: 47,
    tamper: onKv(
      'sink',
      eachCommit((commit) => (isMark(commit) ? withoutGuard(commit) : commit)),
    ),
  },
  {
    rule: 'R7',
    what: 'nobody looks whether the rows of a repeated insert are there',
    seed: 181,
    tamper: {
      ports: (of, ports) =>
        of === 'sink' ? { ...ports, clickhouse: { ...ports.clickhouse, tokenFirst: false } } : ports,
    },
  },
  {
    rule: 'R7',
    what: 'who marked a range does not ask whether somebody else inserted it',
    seed: 61,
    from: 1300,
    options: { crashing: true },
    tamper: onKv(
      'sink',
      eachCommit(({ check = [], ...commit }) => ({ ...commit, check: check.filter(isNoNote) })),
    ),
  },
  {
    rule: 'R7',
    what: 'a group is inserted though one of its marks was lost',
    seed: 78,
    tamper: onKv(
      'sink',
      apart(
        (commits) => commits.some(isMark),
        (answers) => answers.includes(true),
      ),
    ),
  },
  {
    rule: 'R7',
    what: 'who repeats a range does not know the others of its group',
    seed: 94,
    tamper: onKv('sink', (kv) => ({
      async get<T>(scope: Scope, keys: readonly KvKey[]) {
        const found = await kv.get<T>(scope, keys)
        return found.map((entry) => (entry?.key === SINK_MARK ? { ...entry, value: withoutGroup(entry.value) } : entry))
      },
    })),
  },
  {
    rule: 'R7',
    what: 'a group is finished one partition after the other',
    seed: 514,
    from: 400,
    tamper: onKv(
      'sink',
      apart(
        (commits) => commits.every(({ drop }) => drop?.includes(SINK_MARK)),
        (answers) => !answers.includes(false),
      ),
    ),
  },
  {
    rule: 'R7',
    what: 'the position after an insert has no guard',
    seed: 2,
    tamper: onKv('sink', unguarded(SINK_POSITION)),
  },
  {
    rule: 'R8',
    what: 'commands are applied whatever the position of their scope',
    seed: 19,
    from: 19,
    tamper: onKv('control', (kv) => ({
      ...unguarded(CHANGES_SOURCE)(kv),
      position: async (scope, source) => {
        const position = await kv.position(scope, source)
        return source === CHANGES_SOURCE && position !== null ? 0 : position
      },
    })),
  },
  {
    rule: 'R8',
    what: 'a command is answered before it is applied',
    seed: 1,
    tamper: onLog('submit', (log, { bus }) => ({
      async append(topic, partition, records) {
        const seq = await log.append(topic, partition, records)
        const command = unpack(records[0] ?? new Uint8Array(0)) as { id: string; at: number }
        publishHint(bus, 'control.applied', {
          commandId: command.id,
          outcome: { ok: true, seq, at: command.at, revision: seq },
        })
        return seq
      },
    })),
  },
  {
    rule: 'R9',
    what: 'every attempt of an insert has a token of its own',
    seed: 258,
    tamper: {
      ports(of, ports) {
        if (of !== 'sink') return ports
        let attempts = 0
        const insert: Ports['clickhouse']['insert'] = (table, columns, lines, { token }) =>
          ports.clickhouse.insert(table, columns, lines, { token: `${token}#${attempts++}` })
        return { ...ports, clickhouse: { ...ports.clickhouse, insert } }
      },
    },
  },
]

export function withoutGuard({ guard: _, ...commit }: Commit): Commit {
  return commit
}
