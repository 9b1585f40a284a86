// POST /v1/events/labels: one label for many events, those that are named or all of a visitor. What is long goes on behind its answer.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { requestTime } from '../../domain/ids.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import type { Annotate } from '../../ingress/annotate.ts'
import type { Clock } from '../../lib/clock.ts'
import { within } from '../../lib/within.ts'
import type { EventHome, EventPlaces } from '../../reads/event-places.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { Caller } from '../../records/auth.ts'
import { commandOf } from '../callers.ts'
import { orNull } from '../describe.ts'
import { KEEP_ALL } from '../idempotency.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { EVENT_DOCS } from './docs.ts'
import { LABELS, type Label } from './schema.ts'

export interface LabelsNeeds {
  readonly places: EventPlaces
  readonly visitors: Pick<VisitorReads, 'byId' | 'idsOf'>
  readonly annotate: Annotate
  readonly submit: Submitter['submit']
  readonly clock: Pick<Clock, 'now' | 'sleep'>
  /** Ends what goes on behind answers. */
  readonly stopping: AbortSignal
}

const IDS_MAX = 1_000
/** Events of a visitor that are labelled together. */
const EVENTS_AT_ONCE = 1_000
const ANSWER_MS_MAX = 5_000
const DEADLINE_MS = 60_000
/** Visitors whose events are being labelled, of one workspace: each keeps an owner of partitions busy. */
const VISITORS_AT_ONCE_MAX = 4
const RETRY_AFTER_SECONDS = 5

const LabelsBody = Type.Object(
  {
    label: orNull(oneOf(LABELS)),
    requestIds: Type.Optional(
      Type.Array(Type.String({ pattern: '^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$', maxLength: 30 }), {
        minItems: 1,
        maxItems: IDS_MAX,
      }),
    ),
    visitorId: Type.Optional(Type.String({ pattern: '^pv_[0-9A-Za-z]{20}$', maxLength: 23 })),
  },
  strict,
)

/** How far it has come. */
interface Progress {
  readonly label: Label
  requested: number
  labelled: number
  readonly notFound: number
  status: 'running' | 'done'
}

interface Job {
  readonly workspace: string
  readonly progress: Progress
  readonly end: Promise<void>
}

export function labelRoutes(needs: LabelsNeeds): ApiRoute[] {
  const { places, visitors, annotate, submit, clock, stopping } = needs
  /** What goes on behind answers, by visitor and label. */
  const running = new Map<string, Job>()

  async function labelAll({ workspace, env }: Caller, label: Label, homes: readonly EventHome[]): Promise<void> {
    const byPartition = new Map<number, string[]>()
    for (const { requestId, partition } of homes) {
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), requestId])
    }
    await Promise.all(
      [...byPartition].map(([partition, ids]) => {
        const place = { workspace: workspace.id, env, changes: { label } }
        return annotate(partition, ...ids.map((requestId) => ({ ...place, requestId })))
      }),
    )
  }

  async function labelNamed(caller: Caller, label: Label, requestIds: readonly string[]): Promise<Progress> {
    const { workspace, env } = caller
    const homes = await places.named(workspace.id, env, requestIds)
    if (homes === 'pending') throw new ApiError('unavailable', { retryAfter: 1 })
    const requested = new Set(requestIds).size
    const notFound = Math.max(0, requested - homes.length)
    const progress: Progress = { label, requested, labelled: 0, notFound, status: 'running' }
    const end = labelAll(caller, label, homes).then(() => {
      progress.labelled = homes.length
      progress.status = 'done'
    })
    return answerInTime(progress, end)
  }

  async function labelVisitor(caller: Caller, visitorIds: readonly string[], before: number, progress: Progress) {
    const { workspace, env } = caller
    let last: Parameters<EventPlaces['page']>[4] = null
    for (let hasMore = true; hasMore && !stopping.aborted; ) {
      const found = await places.page(workspace.id, env, { visitorIds, before }, EVENTS_AT_ONCE, last)
      await labelAll(caller, progress.label, found.homes)
      progress.labelled += found.homes.length
      hasMore = found.hasMore
      const requestId = found.homes.at(-1)?.requestId
      last = requestId === undefined ? null : { ts: requestTime(requestId) ?? 0, requestId }
    }
    progress.requested = progress.labelled
    progress.status = 'done'
  }

  /** What goes on already is joined. */
  async function begin(caller: Caller, label: Label, visitorId: string): Promise<Job> {
    const { workspace, env } = caller
    const name = JSON.stringify([workspace.id, env, visitorId, label])
    if ((await visitors.byId(workspace.id, env, visitorId)) === null) {
      throw new ApiError('not_found', { field: 'visitorId' })
    }
    const visitorIds = await visitors.idsOf(workspace.id, env, visitorId)
    const before = clock.now()
    const requested = await places.count(workspace.id, env, { visitorIds, before })
    const known = running.get(name)
    if (known !== undefined) return known
    const own = [...running.values()].filter((one) => one.workspace === workspace.id)
    if (own.length >= VISITORS_AT_ONCE_MAX) throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
    const progress: Progress = { label, requested, labelled: 0, notFound: 0, status: 'running' }
    const end = labelVisitor(caller, visitorIds, before, progress).finally(() => running.delete(name))
    const job: Job = { workspace: workspace.id, progress, end }
    running.set(name, job)
    return job
  }

  async function labelAllOf(caller: Caller, label: Label, visitorId: string): Promise<Progress> {
    const { progress, end } = await begin(caller, label, visitorId)
    return answerInTime(progress, end)
  }

  /** Throws what fails before the answer. What fails behind it is told to nobody: whoever asks again has it done again. */
  async function answerInTime(progress: Progress, end: Promise<void>): Promise<Progress> {
    await within(clock, ANSWER_MS_MAX, end)
    return progress
  }

  return [
    keyed({
      method: 'POST',
      doc: EVENT_DOCS.label,
      path: '/v1/events/labels',
      access: 'events:write',
      body: LabelsBody,
      once: KEEP_ALL,
      deadlineMs: DEADLINE_MS,
      async handle({ caller, body: { label, requestIds, visitorId } }) {
        if ((requestIds === undefined) === (visitorId === undefined)) {
          throw invalid('requestIds', 'Either requestIds or visitorId is needed.')
        }
        const progress =
          visitorId === undefined
            ? await labelNamed(caller, label, requestIds ?? [])
            : await labelAllOf(caller, label, visitorId)
        const counts = { label, requested: progress.requested, notFound: progress.notFound }
        const about = visitorId ?? null
        const resource = about === null ? ('event' as const) : ('visitor' as const)
        // Ids of events are their visitors' and go with those: named are none.
        const data = { resource, id: about ?? 'labels', action: 'label', before: null, after: counts, about }
        accepted(await submit({ ...commandOf(caller), type: 'visitor.note', data }))
        return { status: 202, body: { ...progress } }
      },
    }),
  ]
}
