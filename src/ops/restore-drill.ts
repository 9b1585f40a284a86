// `fingerpost restore-drill`: whether a backup is good, found out by restoring it. The copy lies in a folder of its own and runs there on
// loopback without the roles that send or remove anything; what it holds is counted before it starts and after it has stopped.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { DEFAULT_WORKSPACE } from '../control/bootstrap.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import { COUNTED_NOUNS, type ConfigurationCounts, countConfiguration } from '../records/configuration-counts.ts'
import { partitionScope } from '../records/partitions.ts'
import { ERASURES_TABLE } from '../sink/erase.ts'
import type { Manifest } from './backup-format.ts'
import type { Restored } from './restore.ts'

const READY_MS_MAX = 300_000
const POLL_MS = 200
const ANSWER_MS_MAX = 30_000

export interface DrillCounts extends ConfigurationCounts {
  readonly visitors: number
  readonly events: number
  /** Visitors that were erased: of their events a restore leaves nothing. */
  readonly erasures: number
}

export interface DrillNeeds {
  readonly clock: Clock
  /** Ends the drill, with its reason. */
  readonly stopping: AbortSignal
  /** `unreadable`: secrets that the master key at hand does not open. */
  readonly restore: () => Promise<Restored & { readonly unreadable: number }>
  readonly count: () => Promise<DrillCounts>
  /** Starts the copy on a free port of loopback. */
  readonly start: () => Promise<{ readonly port: number; stop(): Promise<void> }>
  /** Opens the operator API of the copy. */
  readonly operatorToken: string
}

export async function countRestored({
  kv,
  clickhouse,
  partitions,
}: {
  kv: Pick<Kv, 'scan' | 'walk'>
  clickhouse: ClickHouse
  partitions: number
}): Promise<DrillCounts> {
  let visitors = 0
  for (let partition = 0; partition < partitions; partition++) {
    for await (const _ of kv.walk(partitionScope(partition), 'visitor')) visitors++
  }
  const rowsOf = async (table: string): Promise<number> => {
    const [found] = await clickhouse.query<{ rows: number }>(`SELECT count() AS rows FROM ${table}`)
    return Number(found?.rows ?? 0)
  }
  const [events, erasures] = [await rowsOf(EVENTS_TABLE), await rowsOf(ERASURES_TABLE)]
  return { ...(await countConfiguration(kv)), visitors, events, erasures }
}

/** Says in one line what was found. Throws Unreadable when the copy does not start, does not answer, or lacks anything. */
export async function restoreDrill(needs: DrillNeeds, manifest: Manifest): Promise<string> {
  const { clock } = needs
  const beganAt = clock.monotonic()
  const { rows, undecided, unreadable } = await needs.restore()
  if (unreadable > 0)
    throw new Unreadable(`${unreadable} secrets of the backup cannot be opened: its master key is missing`)
  const before = await needs.count()
  const startedAt = clock.monotonic()
  const copy = await needs.start()
  let readyMs = 0
  try {
    await ready(needs, copy.port)
    readyMs = clock.monotonic() - startedAt
    await readsEvents(needs, copy.port)
  } finally {
    await copy.stop()
  }
  const after = await needs.count()
  const problems = [
    ...differences(manifest.configuration ?? null, before, 'the backup'),
    ...differences(before, after, 'the copy before it ran'),
    ...(before.erasures === 0 && before.events !== rows ? [`${before.events} of ${rows} events can be read`] : []),
    ...(after.erasures === 0 && after.events < before.events
      ? [`${after.events} of ${before.events} events are left`]
      : []),
  ]
  if (problems.length > 0)
    throw new Unreadable(`the drill of the backup of ${manifest.createdAt} failed: ${problems.join('; ')}`)
  const { visitors, events } = after
  const configuration = COUNTED_NOUNS.map((name) => `${name} ${after[name]}`).join(', ')
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
  const found = `events ${events}, visitors ${visitors}, ${configuration}, identifications to be decided ${undecided}`
  return `drilled: the backup of ${manifest.createdAt} holds ${found}; ready after ${seconds(readyMs)}, all of it took ${seconds(clock.monotonic() - beganAt)}`
}

/** `wanted`: null where nobody counted. */
function differences(wanted: ConfigurationCounts | null, found: ConfigurationCounts, whose: string): string[] {
  if (wanted === null) return []
  return COUNTED_NOUNS.flatMap((name) =>
    wanted[name] === found[name] ? [] : [`${found[name]} ${name}, ${whose} had ${wanted[name]}`],
  )
}

/** Everything accepted is decided, and ClickHouse has all of it. */
const SETTLED = ['fingerpost_identifications_pending', 'fingerpost_sink_oldest_unsunk_seconds']

async function ready({ clock, stopping }: DrillNeeds, port: number): Promise<void> {
  const until = clock.monotonic() + READY_MS_MAX
  let lacking = ''
  while (clock.monotonic() < until) {
    stopping.throwIfAborted()
    const health = await ask(port, '/readyz')
    const metrics = await ask(port, '/metrics')
    const waits = SETTLED.filter((name) => !new RegExp(`^${name} 0$`, 'm').test(metrics.text))
    if (health.status === 200 && waits.length === 0 && /^fingerpost_clickhouse_up 1$/m.test(metrics.text)) return
    lacking = health.status === 200 ? `${waits.join(', ') || 'ClickHouse'} did not settle` : health.text
    await clock.sleep(POLL_MS, stopping)
  }
  throw new Unreadable(`the restored copy did not become ready: ${lacking.slice(0, 500)}`)
}

/** Reads through the API, by a key that is made for it and ends with it. */
async function readsEvents({ operatorToken }: DrillNeeds, port: number): Promise<void> {
  const operator = { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' }
  const keys = `/admin/v1/workspaces/${DEFAULT_WORKSPACE}/keys`
  const body = JSON.stringify({ kind: 'secret', environment: 'live', scopes: ['events:read'] })
  const made = JSON.parse(expect(201, await ask(port, keys, { method: 'POST', headers: operator, body })))
  expect(200, await ask(port, '/v1/events?limit=1', { headers: { authorization: `Bearer ${made.key}` } }))
  expect(200, await ask(port, `${keys}/${made.id}`, { method: 'DELETE', headers: operator }))
}

interface Answer {
  readonly status: number
  readonly text: string
}

function expect(wanted: number, { status, text }: Answer): string {
  if (status !== wanted) throw new Unreadable(`the restored copy answers ${status}: ${text.slice(0, 500)}`)
  return text
}

async function ask(port: number, path: string, init: RequestInit = {}): Promise<Answer> {
  const signal = AbortSignal.timeout(ANSWER_MS_MAX)
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal })
  return { status: response.status, text: await response.text() }
}
