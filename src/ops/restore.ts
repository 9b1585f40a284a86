// `fingerpost restore`: a deployment out of a backup, on whatever servers or folder there are. The log begins anew: what the
// backup knows of decisions goes into the state and into ClickHouse, and only what was undecided is decided here.

import { join } from 'node:path'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Told, Unreadable } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import { APPEND_BYTES_MAX, APPEND_RECORDS_MAX, type Log, type LogRecord, TOPICS, type Topic } from '../log/log.ts'
import { decodeCommand, encodeCommand } from '../records/commands.ts'
import {
  DECIDED_TO,
  DISPATCHER_POSITION,
  ENGINE_POSITION,
  partitionScope,
  SINK_POSITION,
} from '../records/partitions.ts'
import { HALF_RESTORED, isHalfRestored, RESTORE, RESTORED, RESTORING } from '../records/restoring.ts'
import { SYSTEM } from '../records/scopes.ts'
import { ERASURES_TABLE } from '../sink/erase.ts'
import { QUARANTINE_TABLE } from '../sink/insert.ts'
import { readLogRecords, verifyFile } from './backup-files.ts'
import { type BackupFile, filesOfPartition, type Manifest, readManifest } from './backup-format.ts'
import type { Progress } from './progress.ts'
import { finishDeployment, hasConfiguration, isFinished, refoldConfiguration } from './rebuild-config.ts'
import { rebuildErasures } from './rebuild-counts.ts'
import { openInserts, restoreErasures, restoreEvents, restoreQuarantine } from './restore-rows.ts'
import { restoreState } from './restore-state.ts'

export interface RestoreNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly clickhouse: ClickHouse
  readonly clock: Clock
  /** As many as the backup has. */
  readonly partitions: number
  readonly deployment: string
  readonly progress: Progress
}

export interface Restored {
  readonly commands: number
  readonly rows: number
  /** Identifications that nobody had decided yet. */
  readonly undecided: number
}

/** The place to restore into holds something, also of a restore that was cut short, or has another number of partitions. */
export class NotEmpty extends Told {
  override readonly name = 'NotEmpty'
}

/**
 * Resolves with the manifest when every file is the one that was written; throws Unreadable otherwise. The ports to restore into
 * are opened afterwards, for as many partitions as it says. Once `stopping` aborts it fails with its reason.
 */
export async function checkBackup(dir: string, progress: Progress, stopping?: AbortSignal): Promise<Manifest> {
  const manifest = readManifest(dir)
  progress.begin('checking the backup', manifest.files.length)
  for (const file of manifest.files) {
    stopping?.throwIfAborted()
    await verifyFile(dir, file)
    progress.advance()
  }
  progress.end(`${manifest.files.length} files of ${manifest.createdAt}, ${manifest.partitions.length} partitions`)
  return manifest
}

/**
 * Restores a backup that `checkBackup` has just read into a deployment that holds nothing. An interrupted one cannot be resumed:
 * neither a start nor a rebuild takes it for a deployment, and its folder or servers have to be emptied. Throws NotEmpty before
 * anything is written, Unreadable, and what the ports raise.
 */
export async function restore(needs: RestoreNeeds, dir: string, manifest: Manifest): Promise<Restored> {
  const { log, kv, clickhouse, clock, progress } = needs
  await refuseUnfit(needs, manifest.partitions.length)
  await setProgress(kv, null, RESTORING)
  await restoreChanges(log, dir, fileOf(manifest, 'changes.gz'))

  const inserts = openInserts({ clickhouse, clock, token: `${needs.deployment}/restore/${manifest.seal.slice(0, 16)}` })
  const erased = await restoreErasures(inserts, dir, fileOf(manifest, 'erasures.gz'))
  await restoreEvents(inserts, dir, fileOf(manifest, 'rows.gz'), erased, progress)
  await restoreQuarantine(inserts, dir, fileOf(manifest, 'quarantine.gz'))
  let undecided = 0
  progress.begin('visitors and log', manifest.partitions.length)
  for (const [partition, about] of manifest.partitions.entries()) {
    const names = filesOfPartition(partition)
    const files = { state: fileOf(manifest, names.state), events: fileOf(manifest, names.events) }
    await restoreState({ ...needs, inserts, erased }, dir, files, partition, about.stateAt)
    const accepted = readLogRecords(dir, fileOf(manifest, names.identifications))
    undecided += await appendAll(log, 'identifications', partition, accepted, about.decidedTo)
    progress.advance()
  }
  progress.end(`${inserts.rows()} events, ${undecided} identifications to be decided`)
  await appendAll(log, 'dead', 0, readLogRecords(dir, fileOf(manifest, 'dead.gz')), 0)

  const commands = await refoldConfiguration({ log, kv, clock, progress })
  for (let partition = 0; partition < needs.partitions; partition++) {
    await writePositions(kv, log, partition)
    // The log has nothing that was decided before.
    await rebuildErasures(needs, partition, { at: clock.now(), seq: 0 })
  }
  await setProgress(kv, RESTORING, RESTORED)
  await finishDeployment(kv, needs.partitions)
  return { commands, rows: inserts.rows(), undecided }
}

const fileOf = ({ files }: Manifest, name: string): BackupFile =>
  must(
    files.find((file) => file.name === name),
    'a file that the manifest names',
  )

async function refuseUnfit({ log, kv, clickhouse, partitions }: RestoreNeeds, wanted: number): Promise<void> {
  if (await isHalfRestored(kv)) throw new NotEmpty(HALF_RESTORED)
  if (partitions !== wanted) {
    throw new NotEmpty(`the backup has ${wanted} partitions, this deployment has ${partitions}: restore into a new one`)
  }
  for (const topic of TOPICS) {
    const count = topic === 'changes' || topic === 'dead' ? 1 : partitions
    for (let partition = 0; partition < count; partition++) {
      if ((await log.last(topic, partition)) !== 0) throw new NotEmpty(`the log holds ${topic}: ${EMPTY_ONLY}`)
    }
  }
  const isUsed = (await hasConfiguration(kv)) || (await isFinished(kv)) || (await kv.position(SYSTEM, RESTORE)) !== null
  if (isUsed) throw new NotEmpty(`the kv holds records: ${EMPTY_ONLY}`)
  for (const table of [EVENTS_TABLE, ERASURES_TABLE, QUARANTINE_TABLE]) {
    const [found] = await clickhouse.query<{ rows: number }>(`SELECT count() AS rows FROM ${table}`)
    if ((found?.rows ?? 0) > 0) throw new NotEmpty(`ClickHouse has rows in ${table}: ${EMPTY_ONLY}`)
  }
}

const EMPTY_ONLY = 'a backup is restored only into an empty deployment'

async function setProgress(kv: Kv, expect: number | null, next: number): Promise<void> {
  const [done] = await kv.commit([{ scope: SYSTEM, guard: { source: RESTORE, expect, next } }])
  if (done !== true) throw new Conflict('another restore is at work')
}

/**
 * Versions are places in `changes`, and those may be others here: what a command expects is translated. A version that never was
 * stays one, so that what was refused is refused again.
 */
async function restoreChanges(log: Log, dir: string, file: BackupFile): Promise<void> {
  const places = new Map<number, number>()
  for await (const { seq, bytes } of readLogRecords(dir, file)) {
    const command = decodeCommand(bytes)
    const expected = typeof command === 'string' ? undefined : command.expectVersion
    const translated =
      typeof command === 'string' || expected === undefined
        ? bytes
        : encodeCommand({ ...command, expectVersion: places.get(expected) ?? 0 })
    places.set(seq, await log.append('changes', 0, [translated]))
  }
  if (places.size === 0) throw new Unreadable(`${join(dir, file.name)} holds no configuration`)
}

/** Appends the records after `after`, many at a time. Returns how many. */
async function appendAll(
  log: Pick<Log, 'append'>,
  topic: Topic,
  partition: number,
  records: AsyncIterable<LogRecord>,
  after: number,
): Promise<number> {
  let batch: Uint8Array[] = []
  let bytesSum = 0
  let count = 0
  async function flush(): Promise<void> {
    if (batch.length > 0) await log.append(topic, partition, batch)
    count += batch.length
    batch = []
    bytesSum = 0
  }
  for await (const { seq, bytes } of records) {
    if (seq <= after) continue
    if (batch.length === APPEND_RECORDS_MAX || bytesSum + bytes.length > APPEND_BYTES_MAX) await flush()
    batch.push(bytes)
    bytesSum += bytes.length
  }
  await flush()
  return count
}

/** Everything decided is in the state, and everything in the log is undecided. */
async function writePositions(kv: Kv, log: Log, partition: number): Promise<void> {
  const scope = partitionScope(partition)
  const next = await log.last('events', partition)
  await kv.commit([
    { scope, guard: { source: SINK_POSITION, expect: null, next } },
    // Whose turn it was to be told is not in a backup: what is decided from now on is.
    { scope, guard: { source: DISPATCHER_POSITION, expect: null, next } },
    { scope, guard: { source: ENGINE_POSITION, expect: null, next }, put: [{ key: DECIDED_TO, value: 0 }] },
  ])
}
