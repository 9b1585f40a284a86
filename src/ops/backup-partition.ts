// One partition into a backup while it may be working: its log and its state in an order in which nothing can fall between.

import { ENVS } from '../domain/event.ts'
import { decodeEventsRecord } from '../events/record.ts'
import { getAll } from '../kv/get-all.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { pack } from '../lib/codec.ts'
import { Unavailable, Unreadable } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import type { Log, Seq } from '../log/log.ts'
import { ERASED } from '../records/erasures.ts'
import {
  DECIDED_TO,
  ENGINE_POSITION,
  NONCE,
  partitionScope,
  ruleStatKeys,
  SINK_POSITION,
} from '../records/partitions.ts'
import { readRuleSlots } from '../records/rules.ts'
import { scanAll } from '../records/scopes.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import { encodeLogRecord, type FrameWriter } from './backup-files.ts'
import type { BackupPartition } from './backup-format.ts'
import { rebuildRecordsOf } from './rebuild-read.ts'

export interface BackupPartitionNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'walk' | 'position'>
  readonly clock: Clock
}

export interface PartitionWriters {
  readonly identifications: FrameWriter
  readonly events: FrameWriter
  /** `[collection, id, value]` */
  readonly state: FrameWriter
}

/** Collections of visitors: what they hold grows with them. */
const WALKED = ['visitor', 'index', 'learned', ERASED] as const
/** Far below what the log keeps at least: nothing is trimmed unseen while the visitors are walked. */
const FOLLOW_MS = 1_000
const STEADY_ATTEMPTS_MAX = 200
const STEADY_PAUSE_MS = 20

/**
 * Of `events` what ClickHouse or the state may lack is copied: what was done with earlier is trimmed. Identifications come first:
 * those trimmed before they could be copied were decided, so their events are copied, or older still; those the kv knows to be
 * decided are left out, because a restore would leave them out. State is walked between two copies of `events`, so that a
 * visitor who changed meanwhile, and may be missing or too new, is set right by the decisions copied after.
 */
export async function backupPartition(
  { log, kv, clock }: BackupPartitionNeeds,
  partition: number,
  out: PartitionWriters,
): Promise<BackupPartition> {
  const scope = partitionScope(partition)
  const [before] = await kv.get<number>(scope, [DECIDED_TO])
  const accepted = await log.last('identifications', partition)
  for await (const record of rebuildRecordsOf(log, 'identifications', partition, before?.value ?? 0, accepted)) {
    await out.identifications.write(encodeLogRecord(record))
  }

  let eventsTo: Seq = await sunkAndStored(kv, partition)
  let rowsBefore: Seq | null = null
  let decidedTo: Seq | null = null
  let followedAt = 0
  async function follow(): Promise<void> {
    followedAt = clock.monotonic()
    const last = await log.last('events', partition)
    for await (const record of rebuildRecordsOf(log, 'events', partition, eventsTo, last)) {
      const { from, to } = decodeEventsRecord(record.bytes)
      rowsBefore ??= from
      decidedTo = to
      await out.events.write(encodeLogRecord(record))
    }
    eventsTo = last
  }
  await follow()

  const { position, decided, entries } = await readSteady(kv, clock, partition)
  for (const entry of entries) await out.state.write(pack(entry))
  for await (const { key, value } of scanAll(kv, scope, NONCE)) await out.state.write(pack([...key, value]))
  for (const collection of WALKED) {
    for await (const { key, value } of kv.walk(scope, collection)) {
      await out.state.write(pack([...key, value]))
      if (clock.monotonic() - followedAt > FOLLOW_MS) await follow()
    }
  }
  await follow()
  // A kv that was wiped meanwhile has shown only a part of itself.
  await sunkAndStored(kv, partition)
  // Without a record in the log everything was decided by the checkpoint: later events are not part of this backup.
  return { stateAt: position, eventsTo, decidedTo: decidedTo ?? decided, rowsBefore: rowsBefore ?? decided + 1 }
}

/** Up to here ClickHouse has the rows and the kv the state. */
async function sunkAndStored(kv: BackupPartitionNeeds['kv'], partition: number): Promise<Seq> {
  const scope = partitionScope(partition)
  const positions = await Promise.all([kv.position(scope, ENGINE_POSITION), kv.position(scope, SINK_POSITION)])
  return Math.min(...positions.map((position) => position ?? refuseLost(partition)))
}

function refuseLost(partition: number): never {
  throw new Unreadable(`partition ${partition} has lost its records: run rebuild first`)
}

/** Counters are added to, so they must be those of exactly one position. */
async function readSteady(kv: BackupPartitionNeeds['kv'], clock: Clock, partition: number) {
  const scope = partitionScope(partition)
  const keys: KvKey[] = []
  for (const { id: workspace } of await listWorkspaces(kv)) {
    for (const env of ENVS) {
      for (const { id } of await readRuleSlots(kv, workspace, env)) {
        keys.push(...Object.values(ruleStatKeys(`${workspace}/${env}/${id}`)))
      }
    }
  }
  const all = [DECIDED_TO, ...keys]
  for (let attempt = 0; attempt < STEADY_ATTEMPTS_MAX; attempt++) {
    const position = await kv.position(scope, ENGINE_POSITION)
    if (position === null) refuseLost(partition)
    const found = await getAll<unknown>(kv, scope, all)
    if ((await kv.position(scope, ENGINE_POSITION)) === position) {
      const [decided, ...counts] = found
      const entries = counts.flatMap((entry, at) =>
        entry === null ? [] : [[...must(keys[at], 'a counter'), entry.value] as const],
      )
      return { position, decided: (decided?.value as number | undefined) ?? 0, entries }
    }
    await clock.sleep(STEADY_PAUSE_MS)
  }
  throw new Unavailable(`the counts of partition ${partition} change faster than they can be read`)
}
