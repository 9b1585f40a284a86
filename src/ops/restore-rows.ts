// Rows of a backup into empty tables. They lose their place in the log, which begins anew: a rebuild of this deployment must
// take them for older than anything in it. Nothing of a visitor comes back whose erasure the backup knows of.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import type { DecidedSplit } from '../events/record.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import type { Annotation } from '../records/annotations.ts'
import { erasedId, type RecordedErasure, type Tombstone } from '../records/erasures.ts'
import { annotateRows } from '../sink/annotate.ts'
import { ERASURES_TABLE, eraseRows } from '../sink/erase.ts'
import { insertRows, QUARANTINE_COLUMNS, QUARANTINE_TABLE } from '../sink/insert.ts'
import { moveRows } from '../sink/move.ts'
import { readBackupLines } from './backup-files.ts'
import type { BackupFile } from './backup-format.ts'
import type { Progress } from './progress.ts'

/** Tombstones by `erasedId`, with the partition they lie in. */
export type Erased = ReadonlyMap<string, Tombstone & { readonly partition: number }>

export const isErased = (erased: Erased, workspace: string, env: Env, visitorId: string): boolean =>
  erased.size > 0 && erased.has(erasedId(workspace, env, visitorId))

export interface Inserts {
  /** Lines of `events`, as the sink inserts them. */
  events(lines: Iterable<string>): Promise<void>
  /** Executes an erasure on everything inserted before. */
  erase(erasure: RecordedErasure, partition: number): Promise<void>
  /** Brings what was said of events, in order, into everything inserted before. */
  annotate(annotations: readonly Annotation[]): Promise<void>
  flush(): Promise<void>
  /** Lines of another table. */
  others(table: string, columns: readonly string[], lines: readonly string[]): Promise<void>
  move(split: DecidedSplit): Promise<void>
  /** Events inserted so far. */
  rows(): number
}

export interface InsertsNeeds {
  readonly clickhouse: ClickHouse
  readonly clock: Pick<Clock, 'now'>
  /** Begins the tokens of all inserts. */
  readonly token: string
}

const BATCH_ROWS = 10_000
const BATCH_BYTES = 16_777_216
const ERASURE_COLUMNS = ['workspace_id', 'env', 'erased_id', 'erasure_id', 'at', 'log_partition']
/** The last two cells of a row: the partition and the place in its log. */
const PLACE = /,(\d{1,5}),\d{1,16}\](\n?)$/

export function openInserts({ clickhouse, clock, token }: InsertsNeeds): Inserts {
  let batch: string[] = []
  let bytes = 0
  let inserts = 0
  let rows = 0
  const nextToken = () => `${token}/${++inserts}`

  async function flush(): Promise<void> {
    const [first] = batch
    if (first === undefined) return
    const lines = Buffer.from(`${batch.join('\n')}\n`)
    batch = []
    bytes = 0
    const context = { at: clock.now(), partition: partitionOf(first), onQuarantine: () => undefined }
    rows += await insertRows(clickhouse, EVENTS_TABLE, COLUMNS, lines, nextToken(), context)
  }

  return {
    async events(lines) {
      for (const line of lines) {
        batch.push(withoutPlace(line))
        bytes += line.length
        if (batch.length >= BATCH_ROWS || bytes >= BATCH_BYTES) await flush()
      }
    },
    async move(split) {
      await flush()
      await moveRows(clickhouse, split)
    },
    async erase(erasure, partition) {
      await flush()
      await eraseRows(clickhouse, erasure, partition, token)
    },
    async annotate(annotations) {
      await flush()
      await annotateRows(clickhouse, annotations)
    },
    flush,
    async others(table, columns, lines) {
      const part = Buffer.from(`${lines.join('\n')}\n`)
      if (lines.length > 0) await clickhouse.insert(table, columns, part, { token: nextToken() })
    },
    rows: () => rows,
  }
}

function partitionOf(line: string): number {
  const place = PLACE.exec(line)
  if (place === null) throw new Unreadable('the backup holds a row without a place')
  return Number(place[1])
}

const withoutPlace = (line: string): string => line.replace(PLACE, `,${partitionOf(line)},0]$2`)

function parseLine<Cells extends readonly unknown[]>(line: string, cells: number): Cells {
  try {
    const parsed = JSON.parse(line) as Cells
    if (Array.isArray(parsed) && parsed.length === cells) return parsed
  } catch (cause) {
    throw new Unreadable('the backup holds a row that cannot be read', { cause })
  }
  throw new Unreadable('the backup holds a row of another build')
}

/** Restores the erasures, and tells them to whoever restores what they are about. */
export async function restoreErasures(inserts: Inserts, dir: string, file: BackupFile): Promise<Erased> {
  const erased = new Map<string, Tombstone & { readonly partition: number }>()
  await inBatches(readBackupLines(dir, file), async (lines) => {
    for (const line of lines) {
      const cells = parseLine<[string, string, string, string, number, number]>(line, ERASURE_COLUMNS.length)
      const [, , id, erasureId, at, partition] = cells
      erased.set(String(id), { erasureId: String(erasureId), at: Number(at), partition: Number(partition) })
    }
    await inserts.others(ERASURES_TABLE, ERASURE_COLUMNS, lines)
  })
  return erased
}

export async function restoreEvents(
  inserts: Inserts,
  dir: string,
  file: BackupFile,
  erased: Erased,
  progress: Progress,
): Promise<void> {
  progress.begin('events', file.records)
  await inBatches(readBackupLines(dir, file), async (lines) => {
    await inserts.events(erased.size === 0 ? lines : lines.filter((line) => !isOfErased(erased, line)))
    progress.advance(lines.length)
  })
  await inserts.flush()
  progress.end(`${inserts.rows()} rows`)
}

function isOfErased(erased: Erased, line: string): boolean {
  const cells = parseLine<readonly string[]>(line, COLUMNS.length)
  const [workspace, env, , , visitorId] = cells
  return isErased(erased, String(workspace), env as Env, String(visitorId))
}

export async function restoreQuarantine(inserts: Inserts, dir: string, file: BackupFile): Promise<void> {
  await inBatches(readBackupLines(dir, file), async (lines) => {
    const moved = lines.map((line) => {
      const cells = parseLine<readonly unknown[]>(line, QUARANTINE_COLUMNS.length)
      const raw = String(cells.at(-1))
      const ofEvents = cells[QUARANTINE_COLUMNS.indexOf('source')] === EVENTS_TABLE
      return JSON.stringify([...cells.slice(0, -1), ofEvents ? withoutPlace(raw) : raw])
    })
    await inserts.others(QUARANTINE_TABLE, QUARANTINE_COLUMNS, moved)
  })
}

async function inBatches(
  lines: AsyncIterable<string>,
  take: (lines: readonly string[]) => Promise<void>,
): Promise<void> {
  let some: string[] = []
  for await (const line of lines) {
    some.push(line)
    if (some.length < BATCH_ROWS) continue
    await take(some)
    some = []
  }
  await take(some)
}
