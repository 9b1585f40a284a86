// What must go wrong where a thread of its own decides, when its process takes ticks, tells of them or replaces it carelessly.

import type { Line } from '../../src/lib/line.ts'
import { FRONT, type TakenBack, type Tick } from '../../src/log/front-protocol.ts'
import { FIRST_GENERATION } from '../../src/log/front-writer.ts'
import type { Log, PlacedAppend } from '../../src/log/log.ts'
import { countOf } from '../../src/log/slab.ts'
import { type Mutation, NOTHING, onDecider, onLog } from './mutations.ts'
import type { Tamper } from './process.ts'

const options = { sharded: true } as const
const handing = { sharded: true, handing: true } as const
const spreading = { sharded: true, spreading: true } as const
type Together = NonNullable<Log['appendTogether']>

/** Ticks as `change` takes them. */
const onTicks = (change: (together: Together, log: Log) => Together): Tamper => ({
  writer: ({ line, log }) => ({ line, log: { ...log, appendTogether: change(log.appendTogether as Together, log) } }),
})

/** Whatever its thread takes them for, ticks are of the generation that is written. */
const anyGeneration: Tamper = {
  writer({ line, log }) {
    let generation = FIRST_GENERATION
    return {
      log,
      line: {
        ...line,
        hear(name, take) {
          const hears = take as (message: unknown) => void
          if (name === FRONT.tick) line.hear(name, (tick: Tick) => hears({ ...tick, generation }))
          else line.hear(name, hears)
        },
        cast(name, message, transfer) {
          if (name === FRONT.takenBack) ({ generation } = message as TakenBack)
          line.cast(name, message, transfer)
        },
      },
    }
  },
}

const decisionsFirst = (a: PlacedAppend, b: PlacedAppend): number =>
  Number(b.topic === 'events') - Number(a.topic === 'events')

/** The same appends behind whatever is there. */
async function behindLast(log: Log, appends: readonly PlacedAppend[]): Promise<PlacedAppend[]> {
  const lasts = new Map<string, number>()
  const moved: PlacedAppend[] = []
  for (const one of appends) {
    const name = `${one.topic}/${one.partition}`
    const after = lasts.get(name) ?? (await log.last(one.topic, one.partition))
    lasts.set(name, after + countOf(one.entry))
    moved.push({ ...one, after })
  }
  return moved
}

/** Calls of shards' lines as `change` makes them. */
const onCalls = (change: (line: Line) => Line['call']): Tamper => ({
  assignment: (needs) => ({
    ...needs,
    async lineOf(index) {
      const line = await needs.lineOf(index)
      return { ...line, call: change(line) }
    },
  }),
})

/** Decisions are called durable when they are handed over to the process. */
const durableAtOnce = onLog('engine', (log) => ({
  async append(topic, partition, records, opts = {}) {
    const written = log.append(topic, partition, records, opts)
    if (topic !== 'events' || opts.expectLast === undefined) return written
    written.catch(() => undefined)
    return opts.expectLast + records.length
  },
}))

export const SHARD_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'R1',
    what: 'what a lost thread had handed over is written and not adopted',
    seed: 8,
    options,
    tamper: onDecider((decider) => ({
      adopt: (partition, _records, load) => decider.adopt(partition, [NOTHING], load),
    })),
  },
  {
    rule: 'R1',
    what: 'answers leave when the decisions are handed over',
    seed: 7,
    options,
    tamper: durableAtOnce,
  },
  {
    rule: 'R1',
    what: 'a thread answers what was handed over to it before that is durable',
    seed: 7,
    options: handing,
    tamper: durableAtOnce,
  },
  {
    rule: 'R2',
    what: 'the parts of a tick are written whatever becomes of the others',
    seed: 140,
    from: 100,
    options,
    tamper: onTicks((together) => async (appends, opts) => {
      for (const one of appends.toSorted(decisionsFirst)) await together([one], opts)
    }),
  },
  {
    rule: 'R2',
    what: 'a tick that was refused is called durable',
    seed: 20,
    options,
    tamper: onTicks((together) => (appends, opts) => together(appends, opts).catch(() => undefined)),
  },
  {
    rule: 'R2',
    what: 'a tick that builds on what was taken back is written',
    seed: 128,
    from: 300,
    options,
    tamper: anyGeneration,
  },
  {
    rule: 'R2',
    what: 'a thread decides on what its process has taken back',
    seed: 37,
    options,
    tamper: onLog('engine', (log) => ({
      append: (topic, partition, records, { basis: _, ...opts } = {}) => log.append(topic, partition, records, opts),
      basis: () => 0,
    })),
  },
  {
    rule: 'R2',
    what: 'a tick has no fence',
    seed: 35,
    options,
    tamper: onTicks((together, log) => {
      let before: Promise<unknown> = Promise.resolve()
      return (appends, opts) => {
        const written = before.then(async () => together(await behindLast(log, appends), opts))
        before = written.catch(() => undefined)
        return written
      }
    }),
  },
  {
    rule: 'R2',
    what: 'a partition is taken while its appends to another shard are under way',
    seed: 2360,
    from: 200,
    options: { ...spreading, handing: true },
    tamper: onCalls((line) => async (name, ...args) => {
      const done = line.call(name, ...args)
      if (name !== 'giveUp') return done
      done.catch(() => undefined)
      return undefined
    }),
  },
  {
    rule: 'R2',
    what: 'a partition is taken where it stood when it was first moved',
    seed: 1,
    options: spreading,
    tamper: {
      assignment(needs) {
        const { headsOf } = needs
        const before = new Map<number, ReturnType<NonNullable<typeof headsOf>>>()
        if (headsOf === null) return needs
        return {
          ...needs,
          headsOf(partition) {
            const heads = before.get(partition) ?? headsOf(partition)
            before.set(partition, heads)
            return heads
          },
        }
      },
    },
  },
  {
    rule: 'R2',
    what: 'a partition is given to a shard that does not take it',
    seed: 16,
    options: spreading,
    tamper: onCalls(
      (line) =>
        async (name, ...args) =>
          name === 'take' ? undefined : line.call(name, ...args),
    ),
  },
]
