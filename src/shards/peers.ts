// The lines between the shards of a process: over them goes what arrived at one and belongs to another's partitions, and what engines
// tell each other and those whose clients wait.

import type { MessagePort } from 'node:worker_threads'
import type { Bus } from '../bus/bus.ts'
import { COUNTED_SUBJECT } from '../engine/velocity/feed.ts'
import { type HandOver, type OtherShards, openAnswering } from '../ingress/hand-over.ts'
import { type Bells, ringing } from '../lib/doorbell.ts'
import { type Line, openLine } from '../lib/line.ts'
import type { Turn } from '../lib/turn.ts'
import type { Log, Seq } from '../log/log.ts'
import { replySubject } from '../records/replies.ts'
import { type HandingOver, openHandingOver } from './handing-over.ts'

export interface Peer {
  readonly index: number
  readonly port: MessagePort
}

export interface PeersNeeds {
  /** Of this shard. */
  readonly index: number
  /** Names the shard `index` to engines that reply to it. */
  readonly ingressIdOf: (index: number) => string
  /** How many shards the process has. */
  readonly count: number
  /** No other process decides: what is counted concerns only shards of this one. */
  readonly isAlone: boolean
  /** As `Cells` has them. */
  readonly held: Int32Array
  readonly owner: Int32Array
  readonly bells: Bells
  /** What this shard has of its own, and what goes through the process. */
  readonly log: Log
  readonly bus: Bus
  /** The bus inside this thread: what other shards say is published there. */
  readonly near: Bus
  readonly turn: Turn
  readonly onError: (error: unknown) => void
}

export interface Peers {
  /** The line to a shard, in place of that to its predecessor. */
  add(peer: Peer): void
  /** The log whose identifications for partitions of other shards go to them. */
  readonly log: Log
  /** The bus on which what only shards say reaches them directly; answers for this one arrive on `near` as well. */
  readonly bus: Bus
  readonly others: OtherShards
  /** Whether one of them is still to answer what this shard handed over. */
  areAnswering(): boolean
  /** Whether what they handed over is still to be served here. */
  isBehind(): boolean
  close(): void
}

interface Calls {
  append(partition: number, records: readonly Uint8Array[]): Promise<Seq>
  publish(subject: string, message: unknown): void
}

export function openPeers(needs: PeersNeeds): Peers {
  const { count, isAlone, log, bus, near, turn, owner, bells, onError } = needs
  const lines = new Map<number, { readonly line: Line; readonly port: MessagePort; readonly identify: HandingOver }>()
  const shardOf = new Map(Array.from({ length: count }, (_, index) => [replySubject(needs.ingressIdOf(index)), index]))
  const isForAllShards = (subject: string) => isAlone && subject === COUNTED_SUBJECT
  /** The line to the shard that decides a partition, where another one of this process does. */
  const ownerOf = (partition: number) =>
    needs.held[partition] === 1 ? lines.get(owner[partition] as number) : undefined

  const wayTo = (peer: ReturnType<typeof ownerOf>): HandOver | null => peer?.identify.handOver ?? null

  const serve = <Name extends keyof Calls>(line: Line, name: Name, answer: Calls[Name]) => line.serve(name, answer)
  const answering = openAnswering()
  const tell = (line: Line, subject: string, message: unknown) =>
    line.tell('publish' satisfies keyof Calls, subject, message)

  return {
    add({ index, port }) {
      // Whatever a turn of the loop brings for another shard is one message.
      const line = openLine(ringing(port, bells, index), onError, turn.send)
      serve(line, 'append', (partition, records) => log.append('identifications', partition, records))
      serve(line, 'publish', near.publish)
      const handingOver = openHandingOver(line, answering.serve, {
        calls: turn.send,
        answers: turn.take,
        next: setImmediate,
      })
      lines.set(index, { line, port, identify: handingOver })
      port.on('close', () => {
        line.end()
        handingOver.end()
        if (lines.get(index)?.line === line) lines.delete(index)
      })
    },
    log: {
      ...log,
      append(topic, partition, records, opts) {
        const peer = topic === 'identifications' ? ownerOf(partition) : undefined
        // Of one that is started anew just now the process knows when it is there, and the servers of a cluster always.
        if (peer === undefined) return log.append(topic, partition, records, opts)
        return peer.line.call('append' satisfies keyof Calls, partition, records) as Promise<Seq>
      },
    },
    bus: {
      publish(subject, message) {
        const to = shardOf.get(subject)
        const addressed = to === undefined ? undefined : lines.get(to)
        if (addressed !== undefined) tell(addressed.line, subject, message)
        else if (!isForAllShards(subject)) bus.publish(subject, message)
        // Who decides nothing yet reads what was counted when it begins to.
        else for (const [index, { line }] of lines) if (owner.includes(index)) tell(line, subject, message)
      },
      subscribe: (subject, receive) => (isForAllShards(subject) ? near : bus).subscribe(subject, receive),
      isLossy: bus.isLossy,
      close: () => bus.close(),
    },
    others: {
      wayFor(partitionOf) {
        const first = owner[0] as number
        const isDecidedByOne = owner.every((index) => index === first)
        if (isDecidedByOne && first === needs.index) return null
        if (isDecidedByOne && needs.held.every((held) => held === 1)) return wayTo(lines.get(first))
        const partition = partitionOf()
        return partition === null ? null : wayTo(ownerOf(partition))
      },
      answer: answering.answer,
    },
    areAnswering: () => [...lines.values()].some(({ identify }) => identify.isWaiting()),
    isBehind: () => [...lines.values()].some(({ identify }) => identify.isBehind()),
    close() {
      for (const { port } of lines.values()) port.close()
    },
  }
}
