// POST /v1/visitors/{id}/split: some events of a visitor were another device's, which becomes a visitor of its own.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import type { StoredEvent } from '../../domain/event.ts'
import { homePartition, isVisitorId, makeVisitorId, type RandomBytes } from '../../domain/ids.ts'
import { strict, Type } from '../../domain/schema.ts'
import type { Kv } from '../../kv/kv.ts'
import { DAY_MS } from '../../lib/durations.ts'
import type { EventReads } from '../../reads/events.ts'
import { type PartingNeeds, readParting } from '../../reads/parting.ts'
import { awaitSplit, type SplitProgressNeeds } from '../../reads/split-progress.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { Caller } from '../../records/auth.ts'
import { tenantScope } from '../../records/scopes.ts'
import { byTime, PARTING_TTL_MS, partingKey, repeatedSplit, SPLIT_EVENTS_MAX } from '../../records/splits.ts'
import { commandOf } from '../callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { VISITOR_DOCS } from './docs.ts'

export interface SplitNeeds extends Omit<PartingNeeds, 'visitors'>, Omit<SplitProgressNeeds, 'visitors'> {
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly events: Pick<EventReads, 'byId'>
  readonly visitors: VisitorReads
  readonly submit: Submitter['submit']
  readonly random: RandomBytes
  readonly partitions: number
  readonly retentionDays: (workspace: string) => number
}

const SplitBody = Type.Object(
  {
    requestIds: Type.Array(Type.String({ pattern: '^req_[0-9A-HJKMNP-TV-Z]{26}$', maxLength: 30 }), {
      minItems: 1,
      maxItems: SPLIT_EVENTS_MAX,
    }),
  },
  strict,
)
/** Events of today are readable for the retention, and a little longer where clocks differ. */
const SPARE_DAYS = 2
const RETRY_AFTER_SECONDS = 2
const EVENTS_AT_ONCE = 10

const NOT_ITS = 'This is no event of the visitor.'
const NO_VISIT = 'This event could not be decided, so it is no visit: it can only be split off with others that are.'

type Ids = Awaited<ReturnType<VisitorReads['idsOf']>>

export function splitRoutes(needs: SplitNeeds): ApiRoute[] {
  const { kv, events, visitors, submit, random, partitions } = needs

  async function eventsOf({ workspace, env }: Caller, ids: Ids, requestIds: readonly string[]): Promise<StoredEvent[]> {
    const found: StoredEvent[] = []
    for (let from = 0; from < requestIds.length; from += EVENTS_AT_ONCE) {
      const some = requestIds.slice(from, from + EVENTS_AT_ONCE)
      const read = await Promise.all(some.map((id) => events.byId(workspace.id, env, id)))
      read.forEach((event, i) => {
        if (event === null || event === 'pending' || !ids.includes(holderOf(event)))
          throw invalid(`requestIds[${from + i}]`, NOT_ITS)
        found.push(event)
      })
    }
    const holders = new Set(found.filter(isVisit).map(holderOf))
    const alone = found.findIndex((event) => !holders.has(holderOf(event)))
    if (alone >= 0) throw invalid(`requestIds[${alone}]`, NO_VISIT)
    return found
  }

  /** Drawn until its home is that of the record it comes from, whose owner makes it. */
  function drawId(from: string): string {
    for (;;) {
      const id = makeVisitorId(random)
      if (homePartition(id, partitions) === homePartition(from, partitions)) return id
    }
  }

  /** One part for each record that some of the events count in, and what is known of them left for whoever applies the command. */
  async function partsOf({ workspace, env }: Caller, ids: Ids, found: readonly StoredEvent[]) {
    const parts = []
    const scope = tenantScope(workspace.id, env)
    for (const from of new Set(found.map(holderOf))) {
      const moved = found.filter((event) => holderOf(event) === from)
      const requestIds = byTime(moved.map(({ requestId }) => requestId))
      moved.sort((a, b) => requestIds.indexOf(a.requestId) - requestIds.indexOf(b.requestId))
      const to = drawId(from)
      const visits = moved.filter(isVisit)
      const known = await readParting(needs, { workspace: workspace.id, env, from, ids, to, moved: visits })
      await kv.commit([{ scope, put: [{ key: partingKey(to), value: known.parting, ttlMs: PARTING_TTL_MS }] }])
      const uncounted = moved.filter((event) => !isVisit(event)).map(({ requestId }) => requestId)
      parts.push({ from, to, requestIds, uncounted, generations: known.generations })
    }
    return parts.sort((a, b) => b.requestIds.length - a.requestIds.length)
  }

  async function order(caller: Caller, visitorId: string, requestIds: readonly string[], ids: Ids): Promise<void> {
    const parts = await partsOf(caller, ids, await eventsOf(caller, ids, requestIds))
    const keptMs = (needs.retentionDays(caller.workspace.id) + SPARE_DAYS) * DAY_MS
    const data = { visitorId, parts, partitions, keptMs }
    const outcome = await submit({ ...commandOf(caller), type: 'visitor.split', data })
    const other = outcome.ok ? -1 : requestIds.indexOf(outcome.field ?? '')
    if (other >= 0) throw invalid(`requestIds[${other}]`, NOT_ITS)
    accepted(outcome)
  }

  return [
    keyed({
      method: 'POST',
      doc: VISITOR_DOCS.split,
      path: '/v1/visitors/:visitorId/split',
      access: 'visitors:write',
      body: SplitBody,
      once: {
        keep: (body) => body,
        async show(kept, { caller: { workspace, env } }) {
          const body = kept as { readonly visitorId: string; readonly moved: number }
          if ((await visitors.byId(workspace.id, env, body.visitorId)) === null) throw new ApiError('not_found')
          return body
        },
      },
      async handle({ caller, params, body: { requestIds } }) {
        const { workspace, env } = caller
        const visitorId = params.visitorId ?? ''
        const twice = requestIds.findIndex((id, i) => requestIds.indexOf(id) < i)
        if (twice >= 0) throw invalid(`requestIds[${twice}]`, 'This event is named twice.')
        if (!isVisitorId(visitorId)) throw new ApiError('not_found')
        const ids = await visitors.idsOf(workspace.id, env, visitorId)
        const made = () => repeatedSplit(kv, workspace.id, env, ids, requestIds)
        if ((await made()) === null) {
          if ((await visitors.byId(workspace.id, env, visitorId)) === null) throw new ApiError('not_found')
          await order(caller, visitorId, requestIds, ids)
        }
        const parts = await made()
        const isDone = parts !== null && (await awaitSplit(needs, { workspace: workspace.id, env, parts }))
        if (!isDone) throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
        return { status: 201, body: { visitorId: parts[0].to, moved: requestIds.length } }
      },
    }),
  ]
}

const isVisit = ({ evaluationError }: StoredEvent): boolean => evaluationError === null

const holderOf = ({ visitorId, identity }: StoredEvent): string => identity.holder ?? visitorId
