// Two threads of a model process between which partitions move, by the real assignment: who gives up a partition, who takes it, and
// what is accepted for it meanwhile.

import { Unavailable } from '../../src/lib/failures.ts'
import { headsIn, ownTopics } from '../../src/log/front-writer.ts'
import type { Log, Seq } from '../../src/log/log.ts'
import { together } from '../../src/records/event-locator.ts'
import { type AssignmentNeeds, createAssignment } from '../../src/shards/assignment.ts'
import { type Shard, type ShardNeeds, type SingleShard, startShard, withHanding } from './shard.ts'

const SHARDS = 2
const MOVES_MAX = 8
const MOVES_MS = 4_000

export interface SpreadShardsNeeds extends Omit<ShardNeeds, 'assigned' | 'name'> {
  /** The partition has no position. */
  readonly isMissing: (partition: number) => boolean
}

export function startSpreadShards(needs: SpreadShardsNeeds): Shard {
  const { ports, partitions, random, onFailure, host } = needs
  const { clock } = host
  const stopping = new AbortController()
  const owner = new Int32Array(new SharedArrayBuffer(4 * partitions))
  const moving: AssignmentNeeds = {
    owner,
    lineOf: (index) => (shards[index] as SingleShard).line(),
    headsOf: (partition) => headsIn(ports.log, ownTopics(partition)),
    clock,
    closing: stopping.signal,
  }
  const assignment = createAssignment(needs.tamper.assignment?.(moving) ?? moving)
  const lineTo = async (partition: number) => (shards[await assignment.of(partition)] as SingleShard).line()
  const append: Log['append'] = async (topic, partition, records, opts) => {
    if (topic !== 'identifications') return ports.log.append(topic, partition, records, opts)
    return (await lineTo(partition)).call('append', partition, records) as Promise<Seq>
  }
  const shards: SingleShard[] = Array.from({ length: SHARDS }, (_, index) =>
    startShard({
      ...needs,
      handing: false,
      name: `${host.name}.${index}`,
      assigned: { owned: () => assignment.ownedBy(index), append },
    }),
  )

  for (let partition = 0; partition < partitions; partition++) {
    assignment.hold(partition, stopping.signal).catch((error) => {
      if (!needs.isMissing(partition)) onFailure('hold', error)
    })
  }

  async function moveAbout(): Promise<void> {
    for (let left = random.int(MOVES_MAX); left > 0 && !stopping.signal.aborted; left--) {
      await clock.sleep((random.float() * MOVES_MS) / MOVES_MAX, stopping.signal)
      const [partition, to] = [random.int(partitions), random.int(SHARDS)]
      host.note(`partition ${partition} moves to ${to}`)
      await assignment.move(partition, to)
      host.note(`partition ${partition} has moved to ${to}`)
    }
  }
  moveAbout().catch((error) => {
    if (!(error instanceof Unavailable)) onFailure('move', error)
  })

  return withHanding(needs, lineTo, {
    append,
    ready: () => shards.every((shard) => shard.ready()),
    hosts: () => shards.flatMap((shard) => shard.hosts()),
    identify: (request, answer) => random.pick(shards).identify(request, answer),
    glimpse: async (...args) => together(await Promise.all(shards.map((shard) => shard.glimpse(...args)))),
    glimpseNow: (...args) => together(shards.map((shard) => shard.glimpseNow(...args))),
    sunk: (partition, seq) => shards[owner[partition] as number]?.sunk(partition, seq),
    async stop() {
      stopping.abort()
      await Promise.all(shards.map((shard) => shard.stop()))
    },
  })
}
