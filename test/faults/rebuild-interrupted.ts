// A rebuild that is cut off and killed on its way, over a ClickHouse that was in the middle of several ranges when the kv was
// lost: the next one finishes it, and makes the records of a rebuild that nothing disturbed.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { decodeEventsRecord } from '../../src/events/record.ts'
import { EVENTS_TABLE } from '../../src/events/row.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openProgress } from '../../src/ops/progress.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { rebuildRecordsOf } from '../../src/ops/rebuild-read.ts'
import { partitionScope } from '../../src/records/partitions.ts'
import { QUARANTINE_COLUMNS, QUARANTINE_TABLE } from '../../src/sink/insert.ts'
import { startChild } from '../helpers/child.ts'
import { type Ops, PARTITIONS, withOps } from '../helpers/deployment.ts'
import { sized } from '../helpers/depth.ts'
import { copyFolder } from '../helpers/folder.ts'
import type { History } from './history.ts'

const STAGES = ['configuration', 'partition 0', 'partition 2']
/** Of the stages; the others are cut off in this process. */
const KILLED = sized({ quick: [], usual: ['partition 2'], long: STAGES })
const COMPARED = ['visitor', 'index', 'rulestat', 'erased', 'learned', 'nonce']

/** Rebuilds a copy of `short` at `folder`; resolves with the event that ClickHouse had refused. */
export async function rebuildInterrupted(
  t: Test,
  history: History,
  { short, straight, folder }: { readonly short: string; readonly straight: string; readonly folder: string },
): Promise<string> {
  copyFolder(short, folder)
  const quarantined = await withOps(folder, (ops) => makeHoles(ops, history))
  rmSync(join(folder, 'kv'), { recursive: true })

  const script = new URL('./rebuild.child.js', import.meta.url).pathname
  for (const stage of STAGES) {
    if (KILLED.includes(stage)) {
      const child = startChild(script, [folder, stage])
      await child.line((line) => line.startsWith(stage))
      await child.kill()
    } else {
      const cutOff = (ops: Ops) => t.rejects(rebuild(cutAfter(ops, stage)), /cut off/, `cut off after ${stage}`)
      await withOps(folder, cutOff)
    }
  }
  const kept = await withOps(folder, async (ops) => {
    const done = await rebuild(ops)
    t.match(done, { commands: null, doubled: 0 })
    t.ok(done.partitions >= 1 && done.partitions < PARTITIONS, `${done.partitions} partitions were left`)
    return recordsIn(ops)
  })
  t.same(kept, await withOps(straight, recordsIn), 'the records of one that was not interrupted')
  return quarantined
}

/** Commits nothing more once it has told of the stage. */
function cutAfter(ops: Ops, stage: string): Ops {
  let isTold = false
  const write = (text: string) => {
    isTold ||= text.startsWith(stage)
  }
  const commit: Kv['commit'] = async (commits) => {
    if (isTold) throw new Error('cut off')
    return ops.kv.commit(commits)
  }
  return { ...ops, kv: { ...ops.kv, commit }, progress: openProgress({ write }, systemClock) }
}

async function recordsIn({ kv }: Ops): Promise<Record<string, unknown>> {
  const records: [string, unknown][] = []
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const scope = partitionScope(partition)
    for (const collection of COMPARED) {
      for await (const { key, value } of kv.walk(scope, collection)) records.push([`${scope}/${key.join('/')}`, value])
    }
  }
  return Object.fromEntries(records.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** As if the sink had been in the middle of several ranges of the log, one row of which ClickHouse refused. */
async function makeHoles({ log, clickhouse }: Ops, { visits, said }: History): Promise<string> {
  const refusable = new Set(visits.map(({ event }) => event.requestId).filter((requestId) => !said.has(requestId)))
  let quarantined: string | null = null
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const last = await log.last('events', partition)
    const found: { readonly item: DecidedItem; readonly row: string }[] = []
    for await (const { bytes } of rebuildRecordsOf(log, 'events', partition, 0, last)) {
      const { items, rows } = decodeEventsRecord(bytes)
      let at = 0
      for (const item of items) {
        found.push({ item, row: Buffer.from(rows.subarray(at, at + item.rowBytes)).toString() })
        at += item.rowBytes
      }
    }
    const holes = partition === PARTITIONS - 1 ? found : found.filter((_, i) => i % 3 === 1)
    if (holes.length === 0) continue
    const seqs = holes.map(({ item }) => item.seq).join()
    await clickhouse.command(
      `ALTER TABLE ${EVENTS_TABLE} DELETE WHERE log_partition = ${partition} AND log_seq IN (${seqs}) SETTINGS mutations_sync = 1`,
    )
    const refused = holes.find(({ item }) => refusable.has(item.requestId))
    if (refused === undefined || quarantined !== null) continue
    const row = `${JSON.stringify([Date.now(), EVENTS_TABLE, partition, 'token', 'refused', refused.row])}\n`
    await clickhouse.insert(QUARANTINE_TABLE, QUARANTINE_COLUMNS, Buffer.from(row), { token: 'one' })
    quarantined = refused.item.requestId
  }
  if (quarantined === null) throw new Error('no row that could be refused')
  return quarantined
}
