// `fingerpost backup`: everything of a deployment in one folder, also while it runs in a cluster.

import { readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { openRename, withoutErased } from '../jobs/forget-ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import { makeFolder } from '../lib/make-folder.ts'
import type { Log, Topic } from '../log/log.ts'
import { COUNTED_NOUNS, countConfiguration } from '../records/configuration-counts.ts'
import { CHANGES_READER, SYSTEM } from '../records/scopes.ts'
import { encodeLogRecord, type FrameWriter, openFrames } from './backup-files.ts'
import {
  type BackupFile,
  type BackupPartition,
  filesOfPartition,
  MANIFEST,
  type Manifest,
  sealManifest,
} from './backup-format.ts'
import { backupPartition } from './backup-partition.ts'
import { backupErasures, backupEvents, backupQuarantine } from './backup-rows.ts'
import type { Progress } from './progress.ts'
import { hasConfiguration, isFinished } from './rebuild-config.ts'
import { rebuildRecordsOf } from './rebuild-read.ts'

export interface BackupNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'walk' | 'position'>
  readonly clickhouse: Pick<ClickHouse, 'query'>
  readonly clock: Clock
  readonly partitions: number
  readonly deployment: string
  /** Of this build. */
  readonly product: string
  readonly progress: Progress
}

/**
 * Writes a backup into `dir`, a new or empty folder. What it holds of a deployment that works meanwhile: of each partition every
 * event up to one moment between its start and its end, once, with visitors, counts and nonces as these events left them; every
 * identification accepted before the start, decided or not; the configuration as of its end. An interrupted backup has no
 * manifest and cannot be restored. Throws Unreadable when the folder holds something or the kv has lost its records.
 */
export async function backup(needs: BackupNeeds, dir: string): Promise<Manifest> {
  const { log, kv, clickhouse, clock, progress } = needs
  if (!(await hasConfiguration(kv)) || !(await isFinished(kv))) {
    throw new Unreadable('the kv has lost its records, or never had any: run rebuild first')
  }
  claimFolder(dir)
  const ofPartitions: BackupPartition[] = []
  const partitionFiles: BackupFile[] = []
  progress.begin('visitors and log', needs.partitions)
  for (let partition = 0; partition < needs.partitions; partition++) {
    const names = filesOfPartition(partition)
    const out = {
      identifications: openFrames(dir, names.identifications),
      events: openFrames(dir, names.events),
      state: openFrames(dir, names.state),
    }
    try {
      ofPartitions.push(await backupPartition({ log, kv, clock }, partition, out))
      for (const writer of Object.values(out)) partitionFiles.push(await writer.close())
    } catch (error) {
      for (const writer of Object.values(out)) await writer.abandon()
      throw error
    }
    progress.advance()
  }
  const counted = (topic: string) =>
    partitionFiles.filter(({ name }) => name.startsWith(topic)).reduce((sum, { records }) => sum + records, 0)
  progress.end(`${counted('state')} records, ${counted('events')} of the log`)

  const before = ofPartitions.map(({ rowsBefore }) => rowsBefore)
  // Configuration as late as possible: a key that was revoked meanwhile stays revoked.
  const configurationBefore = await countConfiguration(kv)
  const shared = {
    rows: await fill(dir, 'rows.gz', (out) => backupEvents(clickhouse, out, before, progress)),
    erasures: await fill(dir, 'erasures.gz', (out) => backupErasures(clickhouse, out)),
    quarantine: await fill(dir, 'quarantine.gz', (out) => backupQuarantine(clickhouse, out, before)),
    dead: await fill(dir, 'dead.gz', (out) => copyTopic(log, 'dead', out)),
    changes: await fill(dir, 'changes.gz', (out) => copyChanges(needs, out)),
  }
  const configuration = await countConfiguration(kv)
  const isSteady = COUNTED_NOUNS.every((noun) => configuration[noun] === configurationBefore[noun])
  const manifest = sealManifest({
    ...(isSteady ? { configuration } : {}),
    product: needs.product,
    deployment: needs.deployment,
    createdAt: new Date(clock.now()).toISOString(),
    partitions: ofPartitions,
    files: [shared.changes, shared.dead, shared.rows, shared.erasures, shared.quarantine, ...partitionFiles],
  })
  await writeBackupDurably(dir, MANIFEST, JSON.stringify(manifest, null, 2))
  return manifest
}

function claimFolder(dir: string): void {
  makeFolder(dir)
  if (readdirSync(dir).length > 0) throw new Unreadable(`${dir} is not empty: name a new folder for the backup`)
}

async function fill(dir: string, name: string, write: (out: FrameWriter) => Promise<void>): Promise<BackupFile> {
  const out = openFrames(dir, name)
  try {
    await write(out)
    return await out.close()
  } catch (error) {
    await out.abandon()
    throw error
  }
}

async function copyTopic(log: BackupNeeds['log'], topic: Topic, out: FrameWriter): Promise<void> {
  const last = await log.last(topic, 0)
  for await (const record of rebuildRecordsOf(log, topic, 0, 0, last)) await out.write(encodeLogRecord(record))
}

/** Whoever was erased is left out of commands that were applied, as the next purge will leave them out of the log. */
async function copyChanges(needs: BackupNeeds, out: FrameWriter): Promise<void> {
  const { log, kv } = needs
  const last = await log.last('changes', 0)
  const applied = (await kv.position(SYSTEM, CHANGES_READER)) ?? 0
  const rename = openRename(needs)
  for await (const record of rebuildRecordsOf(log, 'changes', 0, 0, last)) {
    const { seq, bytes } = record
    await out.write(encodeLogRecord(seq > applied ? record : { seq, bytes: await withoutErased(rename, bytes) }))
  }
}

export async function writeBackupDurably(dir: string, name: string, text: string): Promise<void> {
  const file = await open(join(dir, name), 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  const folder = await open(dir, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
