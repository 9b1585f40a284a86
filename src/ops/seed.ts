// `fingerpost seed`: a made-up but plausible history, straight into ClickHouse and the kv. The same seed over the same time makes
// the same rows under the same tokens, so that doing it again, or going on after an interruption, adds nothing twice.

import { setImmediate } from 'node:timers/promises'
import type { Bus } from '../bus/bus.ts'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { prepareDeployment } from '../control/bootstrap.ts'
import type { Env } from '../domain/event.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import { Conflict, Told } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { DISPATCHER_POSITION, ENGINE_POSITION, SINK_POSITION } from '../records/partitions.ts'
import { readRulesetRevision } from '../records/rules.ts'
import { SYSTEM } from '../records/scopes.ts'
import type { Progress } from './progress.ts'
import { seedLists, seedRules, seedWorkspace } from './seed-config.ts'
import { openEventMaker } from './seed-events.ts'
import { openSeedInserts } from './seed-inserts.ts'
import { openSeedLists } from './seed-lists.ts'
import { openOutcomes } from './seed-outcomes.ts'
import { openSeedState } from './seed-state.ts'
import { openVisits } from './seed-visits.ts'

export interface SeedNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clickhouse: Pick<ClickHouse, 'insert' | 'query'>
  readonly clock: Clock
  readonly random: RandomBytes
  readonly partitions: number
  /** As the sink has it. */
  readonly deployment: string
  readonly retentionDays: number
  readonly progress: Progress
}

export interface SeedWanted {
  readonly events: number
  readonly days: number
  readonly seed: string
  /** Id or name. */
  readonly workspace: string
  readonly env: Env
  /** Milliseconds at which the history ends; default: now. */
  readonly until?: number
}

export interface Seeded {
  /** Events added: none when this history was there already. */
  readonly events: number
  readonly visitors: number
  readonly seconds: number
}

/** What was asked for cannot be: the sentence says why. */
export class CannotSeed extends Told {
  override readonly name = 'CannotSeed'
}

const SEED_EVENTS_MAX = 1_000_000_000

/** What is remembered of a history, so that it stays the same however often and whenever it is asked for. */
interface Marker {
  readonly from: number
  readonly until: number
  /** Of the ruleset, once the rules of the history were in it. */
  readonly revision: number
  readonly done: boolean
}

/** Throws CannotSeed. The log is not touched: rows are marked as older than anything in it, for a rebuild to find. */
export async function seed(needs: SeedNeeds, wanted: SeedWanted): Promise<Seeded> {
  const { log, kv, clock, partitions, progress } = needs
  const problem = seedProblem(wanted, { nowMs: clock.now(), retentionDays: needs.retentionDays })
  if (problem !== null) throw new CannotSeed(problem)
  await prepareDeployment({ log, kv, partitions, sources: [ENGINE_POSITION, SINK_POSITION, DISPATCHER_POSITION] })
  const workspace = await seedWorkspace(needs, wanted.workspace)
  if (workspace === null) throw new CannotSeed(`there is no workspace ${wanted.workspace}`)
  const { env, events } = wanted
  const name = nameOf(workspace.id, wanted)
  const known = await readMarker(kv, name)
  if (known?.done === true) return { events: 0, visitors: 0, seconds: 0 }

  const rules = await seedRules(needs, workspace.id, env)
  const revision = (await readRulesetRevision(kv, workspace.id, env)) ?? 0
  const marker = known ?? (await mark(needs, name, wanted, revision))
  const isResumed = known !== null
  const startedAt = clock.monotonic()
  const maker = openEventMaker(name, openOutcomes(workspace, env, rules, marker.revision))
  const inserts = openSeedInserts({ ...needs, workspace: workspace.id, env, name, isResumed })
  const state = openSeedState({ kv, partitions, workspace: workspace.id, env, name })
  const lists = openSeedLists()
  const visits = openVisits({ seed: name, events, from: marker.from, until: marker.until, partitions })
  progress.begin('events', events)
  for (let step = 0; step < visits.steps; step++) {
    let made = 0
    visits.step(
      step,
      (visitor, atMs) => {
        const event = maker.make(visitor, atMs)
        inserts.add(event, visitor.partition)
        state.count(event, visitor.partition)
        made++
      },
      (visitor) => {
        state.keep(visitor)
        lists.note(visitor)
      },
    )
    progress.advance(made)
    // What is under way goes on only in turns of the event loop.
    await setImmediate()
    await Promise.all([inserts.room(), state.room()])
  }
  await inserts.flush()
  const visitors = await state.flush()
  await seedLists(needs, workspace.id, env, lists.lists())
  await kv.commit([
    { scope: SYSTEM, put: [{ key: markerKey(name), value: { ...marker, done: true } satisfies Marker }] },
  ])
  const seconds = (clock.monotonic() - startedAt) / 1_000
  progress.end(`${events} events of ${visitors} visitors, ${Math.round(events / seconds)} events per second`)
  return { events: inserts.inserted(), visitors, seconds }
}

/** What of it cannot be, as a sentence; null: nothing. Nothing needs to be open for it. */
export function seedProblem(
  { events, days, until }: SeedWanted,
  { nowMs, retentionDays }: { readonly nowMs: number; readonly retentionDays: number },
): string | null {
  if (!Number.isInteger(events) || events < 1 || events > SEED_EVENTS_MAX) {
    return `--events takes a whole number from 1 to ${SEED_EVENTS_MAX}`
  }
  if (!Number.isInteger(days) || days < 1 || days > retentionDays) {
    return `--days takes a whole number from 1 to ${retentionDays}: older events are not kept`
  }
  if (until === undefined) return null
  if (until > nowMs) return '--until lies in the future'
  const isOld = until - DAY_MS < nowMs - retentionDays * DAY_MS
  return isOld ? '--until lies so far back that the events would not be kept' : null
}

/** Names a history and seeds it: whatever changes a row is in it. */
const nameOf = (workspace: string, { env, seed, events, days, until }: SeedWanted): string =>
  `${workspace}/${env}/${seed}/${events}/${days}${until === undefined ? '' : `/${until}`}`

const markerKey = (name: string): KvKey => ['seed', name]

async function readMarker(kv: Pick<Kv, 'get'>, name: string): Promise<Marker | null> {
  const [found] = await kv.get<Marker>(SYSTEM, [markerKey(name)])
  return found?.value ?? null
}

async function mark(
  { kv, clock, retentionDays }: SeedNeeds,
  name: string,
  { days, until }: SeedWanted,
  revision: number,
): Promise<Marker> {
  const key = markerKey(name)
  const end = until ?? Math.floor(clock.now() / MINUTE_MS) * MINUTE_MS
  const oldest = clock.now() - retentionDays * DAY_MS + HOUR_MS
  const marker: Marker = { from: Math.max(end - days * DAY_MS, oldest), until: end, revision, done: false }
  const [won] = await kv.commit([{ scope: SYSTEM, check: [[key, null]], put: [{ key, value: marker }] }])
  if (won !== true) throw new Conflict('another process seeds the same history')
  return marker
}
