// Keeps the log a bridge and not an archive: identifications go when their decisions are checkpointed,
// events when checkpoint, sink and dispatcher are past them, and never within `keepMs` of having been written.

import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { readNewestErasure } from '../records/erasure-progress.ts'
import { encodeAnnotation } from '../records/identification.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../records/partitions.ts'

export interface TrimNeeds {
  readonly log: Pick<Log, 'trim' | 'last' | 'append'>
  readonly kv: Pick<Kv, 'position' | 'get'>
  readonly clock: Clock
  readonly partitions: number
  readonly keepMs: number
  /** Sources of further positions to wait for; one that was never written waits for nothing. */
  readonly followers?: readonly string[]
  readonly everyMs: number
  readonly onError: (error: unknown) => void
}

interface Sample {
  readonly at: number
  readonly events: number
}

/** Says nothing of no event. */
const NOTHING = { annotationId: 'none', workspace: 'none', env: 'live', requestId: 'none', changes: {} } as const

/** Runs until `signal` aborts. Time is measured from this process's own samples, so a restart only trims later. */
export async function runTrim(needs: TrimNeeds, signal: AbortSignal): Promise<void> {
  const { clock } = needs
  const samples: Sample[][] = Array.from({ length: needs.partitions }, () => [])
  while (!signal.aborted) {
    await nextBeat(clock, needs.everyMs, signal)
    for (const [partition, taken] of samples.entries()) {
      if (signal.aborted) return
      try {
        await trimPartition(needs, partition, taken)
      } catch (error) {
        if (!(error instanceof Unavailable)) needs.onError(error)
      }
    }
  }
}

async function trimPartition(needs: TrimNeeds, partition: number, samples: Sample[]): Promise<void> {
  const { log, kv, clock, keepMs } = needs
  const scope = partitionScope(partition)
  const [engine, sink, decided, ...others] = await Promise.all([
    kv.position(scope, ENGINE_POSITION),
    kv.position(scope, SINK_POSITION),
    kv.get<number>(scope, [DECIDED_TO]),
    ...(needs.followers ?? []).map((source) => kv.position(scope, source)),
  ])
  const decidedTo = decided[0]?.value
  if (engine === null || sink === null) return
  // Above all that is there it is of another log, in which it says nothing.
  if (decidedTo !== undefined && decidedTo <= (await log.last('identifications', partition))) {
    await log.trim('identifications', partition, decidedTo)
  }
  const erased = await readNewestErasure(kv, partition)
  // The newest record stays, and one that names an erased visitor must not.
  if (erased !== null && erased.seq === (await log.last('events', partition))) {
    await log.append('identifications', partition, [encodeAnnotation(NOTHING)])
  }

  const slowest = Math.min(engine, sink, ...others.map((position) => position ?? sink))
  const now = clock.monotonic()
  samples.push({ at: now, events: slowest })
  let upTo = 0
  while (samples[0] !== undefined && samples[0].at <= now - keepMs) upTo = samples.shift()?.events ?? upTo
  // Positions go back only when the kv was lost and rebuilt: then older samples know nothing of what must be adopted. The newest
  // record stays, because it says how far identifications are decided.
  const done = Math.min(upTo, slowest) - 1
  if (done > 0) await log.trim('events', partition, done)
}
