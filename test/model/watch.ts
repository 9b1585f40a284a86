// Checks that belong to a moment of the run: what an answer says when it is given, what a read says later, what a trim takes.

import type { Env, StoredEvent } from '../../src/domain/event.ts'
import { fromRow } from '../../src/events/row.ts'
import { presentResult } from '../../src/identity/result.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { EventReads } from '../../src/reads/events.ts'
import { ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { movedKey } from '../../src/records/splits.ts'
import type { Answered } from './clients.ts'
import { type DecidedSoFar, visitorOf } from './decided.ts'
import { type Deployment, decidedTo, PARTITIONS, positionOf } from './deployment.ts'
import type { Erased } from './erasers.ts'
import { peek } from './model-kv.ts'
import type { Reads, SplitTold } from './process.ts'
import type { Scheduler } from './scheduler.ts'

export type Problem = (check: string, detail: string) => void

const ENVS: readonly Env[] = ['live', 'test']

/** Only a server gets the signals. */
export const kindOf = (body: string) => (body.includes('"signals":') ? 'secret' : 'public')

/** The event as it was answered: before the erasure of whom it may be of besides, or, of an event read from the log, behind it. */
export function asAnswered(
  event: StoredEvent,
  { erasureOf }: Pick<DecidedSoFar, 'erasureOf'>,
  body: string,
): StoredEvent {
  const { possibleVisitorId: visitorId, possibleConfidence: confidence } = JSON.parse(body)
  const { env, possible } = event
  const isErased = (visitorId: string) => erasureOf(visitorOf({ env, visitorId })) !== undefined
  if (possible === null)
    return visitorId != null && isErased(visitorId) ? { ...event, possible: { visitorId, confidence } } : event
  return visitorId == null && isErased(possible.visitorId) ? { ...event, possible: null } : event
}

export function watchTrims({ log, kv }: Deployment, scheduler: Scheduler, keepMs: number, problem: Problem): void {
  log.onTrim = (topic, partition, gone) => {
    // Its records in the kv were lost: the trim goes by what they said.
    const engine = positionOf(kv, partitionScope(partition), ENGINE_POSITION)
    if (engine === null) return
    const sink = positionOf(kv, partitionScope(partition), SINK_POSITION) ?? 0
    const done = topic === 'events' ? Math.min(engine, sink) : decidedTo(kv, partition)
    const last = gone.at(-1)
    if (last === undefined) return
    if (last.seq > done) problem('a trim takes what is still needed', `${topic}/${partition} ${last.seq} of ${done}`)
    const ageMs = scheduler.now() - last.at
    if (topic === 'events' && ageMs < keepMs)
      problem('a trim takes what is too young', `${topic}/${partition} ${ageMs} ms`)
  }
}

const LISTED_MAX = 1_000

/** `isExempt`: what was said about a request may be wrong, since the log lost it. */
export function createWatch(
  { clickhouse, kv, workspace }: Deployment,
  decided: DecidedSoFar,
  isExempt: (requestId: string) => boolean,
  problem: Problem,
) {
  /** Where records of the kv were lost nobody can tell whether a visitor was erased: reads refuse then. */
  const isWiped = () =>
    Array.from({ length: PARTITIONS }, (_, p) => positionOf(kv, partitionScope(p), ENGINE_POSITION)).includes(null)
  const isQuarantined = (requestId: string) =>
    (clickhouse.rows.get('quarantine') ?? []).some(({ cells }) => String(cells[5]).includes(requestId))
  /** The sink may have executed it before it is answered. */
  const isErased = (requestId: string) =>
    decided.eventsOf(requestId).some(
      ({ item, cells }) =>
        decided.erasureOf(visitorOf(item)) !== undefined ||
        decided.erasureOf(decided.ownerOf(item)) !== undefined ||
        // The event of an alias goes with the visitor it shows.
        decided.erasureOf(visitorOf(fromRow(cells() as Parameters<typeof fromRow>[0]))) !== undefined ||
        // Whoever an alias stood for is erased with it, wherever that is decided first.
        decided
          .erasures()
          .some(
            ({ erasure: { env, survivor, former = [] } }) =>
              env === item.env && [survivor, ...former].includes(item.visitorId),
          ),
    )

  const isMoved = (requestId: string) =>
    ENVS.some((env) => peek(kv, tenantScope(workspace.id, env), movedKey(requestId)) !== undefined)

  /** Of somebody who was merged into it while it was erased: until that one is erased as well, behind its back. */
  const isLeftTo = (requestId: string) =>
    decided
      .eventsOf(requestId)
      .some(
        ({ item, cells }) =>
          visitorOf(fromRow(cells() as Parameters<typeof fromRow>[0])) !== visitorOf(item) &&
          decided.erasureOf(decided.ownerOf(item)) === undefined,
      )

  return {
    /** Whoever decided can be asked at the moment the answer leaves. */
    async onReply(requestId: string, body: string, reads: EventReads): Promise<void> {
      if (isExempt(requestId)) return
      let found: StoredEvent | null = null
      let refused = false
      for (const env of ENVS) {
        // Asked for in the wrong environment it may be anything but found.
        const answer = await reads.byId(workspace.id, env, requestId).catch((error) => {
          refused ||= error instanceof Unavailable
          return null
        })
        if (answer !== null && answer !== 'pending') found = answer
      }
      if (found === null && ((refused && isWiped()) || isErased(requestId))) return
      // Answered once more by who took over, behind a split: the answer is of before.
      if (isMoved(requestId)) return
      if (found === null && !isQuarantined(requestId)) problem('an answer is readable when it is given', requestId)
      else if (found !== null && presentResult(asAnswered(found, decided, body), workspace, kindOf(body)) !== body)
        problem('an answer equals what is read', requestId)
    },

    /** What a client was told before must not be denied; reads may refuse while a partition changes hands. */
    async onRead({ ask, requestId, status }: Answered, reads: EventReads): Promise<void> {
      if (requestId === null || isQuarantined(requestId) || isExempt(requestId)) return
      // A repeat of a nonce never becomes an event.
      if (status === 202 && ask.nonce !== null) return
      try {
        const found = await reads.byId(workspace.id, ask.env, requestId)
        if (found === null && isErased(requestId)) return
        if (found === null || (found === 'pending' && status === 200))
          problem('what was accepted can be found', `${requestId}: ${found} after ${status}`)
      } catch (error) {
        if (!(error instanceof Unavailable)) problem('what was accepted can be found', String(error))
      }
    },

    /** Once a split was answered nobody is shown its events as those of whom they were; reads may refuse. */
    async onSplit({ env, draft, requestIds }: SplitTold, { events }: Reads): Promise<void> {
      const froms = draft.data.parts.map(({ from }) => from)
      const shown = (what: string) => problem('behind an answered split no event is the old visitor’s', what)
      const unlessRefused = async <T>(read: Promise<T>): Promise<T | null> => {
        try {
          return await read
        } catch (error) {
          if (!(error instanceof Unavailable)) shown(String(error))
          return null
        }
      }
      const page = await unlessRefused(events.page(workspace.id, env, { visitorIds: froms }, LISTED_MAX, null))
      for (const { requestId } of page?.events ?? [])
        if (requestIds.includes(requestId)) shown(`a list has ${requestId}`)
      for (const requestId of requestIds) {
        const event = await unlessRefused(events.byId(workspace.id, env, requestId))
        if (event !== null && event !== 'pending' && froms.includes(event.visitorId)) shown(`${requestId}`)
      }
    },

    /** Once an erasure was answered nobody is shown anything of the visitor any more; reads may refuse. */
    async onErased({ env, visitorId }: Erased, { events, visitors }: Reads): Promise<void> {
      const shown = (what: string) => problem('nothing of an erased visitor is read', `${visitorId}: ${what}`)
      const unlessRefused = async <T>(read: Promise<T>): Promise<T | null> => {
        try {
          return await read
        } catch (error) {
          if (!(error instanceof Unavailable)) shown(String(error))
          return null
        }
      }
      if ((await unlessRefused(visitors.byId(workspace.id, env, visitorId))) !== null) shown('the visitor')
      for (const filter of [{ visitorIds: [visitorId] }, {}]) {
        const page = await unlessRefused(events.page(workspace.id, env, filter, LISTED_MAX, null))
        for (const event of page?.events ?? [])
          if (event.visitorId === visitorId && !isLeftTo(event.requestId)) shown(`a list has ${event.requestId}`)
      }
      for (const { item } of decided.eventsBy(visitorOf({ env, visitorId }))) {
        // Somebody else's by now.
        if (peek(kv, tenantScope(workspace.id, env), movedKey(item.requestId)) !== undefined) continue
        if (decided.ownerOf(item) !== visitorOf(item)) continue
        const event = await unlessRefused(events.byId(workspace.id, env, item.requestId))
        if (event !== null && event !== 'pending') shown(`the event ${item.requestId}`)
      }
    },
  }
}
