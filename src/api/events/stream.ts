// GET /v1/events/stream: events as they are decided, as server-sent events. Nothing is stored for who does not listen and nothing is
// repeated: lists have what was missed.

import type { StoredEvent } from '../../domain/event.ts'
import { strict, Type } from '../../domain/schema.ts'
import { presentEvent } from '../../events/present.ts'
import type { HttpStream } from '../../http/stream.ts'
import type { Clock } from '../../lib/clock.ts'
import { openEventTest } from '../../reads/event-filter.ts'
import type { Owned } from '../../reads/owned.ts'
import type { EventTail } from '../../reads/tail.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import { openAudience } from '../audience.ts'
import { callerPlaceOf } from '../callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { EVENT_DOCS } from './docs.ts'
import { FILTER_QUERY, readFilter, TAG_QUERY, withAllIds } from './filter.ts'

export interface EventStreamNeeds {
  readonly tail: EventTail
  readonly owned: Owned
  readonly visitors: Pick<VisitorReads, 'idsOf'>
  readonly clock: Pick<Clock, 'sleep'>
}

/** Whoever reads by eye reads no more; the rest is counted. */
const EVENTS_PER_SECOND_MAX = 50
/** Between two writes: whoever has not taken the one before by then is too slow, and cut off. */
const WRITE_EVERY_MS = 250
const WRITES_PER_SECOND = 4
const StreamQuery = Type.Object(FILTER_QUERY, { ...strict, ...TAG_QUERY })

export function eventStreamRoutes({ tail, owned, visitors, clock }: EventStreamNeeds): ApiRoute[] {
  const audience = openAudience()

  async function listen(
    { workspace, env }: ReturnType<typeof callerPlaceOf>,
    stream: HttpStream,
    holds: (event: StoredEvent) => boolean,
    show: (event: StoredEvent) => string,
  ): Promise<void> {
    const leave = audience.join(workspace)
    const closed = new AbortController()
    stream.whenClosed(() => {
      leave()
      closed.abort()
    })
    const listener = openListener(async (event) => {
      const shown = await owned(event)
      return shown === null ? null : show(shown)
    })
    const stop = await tail.watch(workspace, env, (event) => {
      if (holds(event)) listener.hear(event)
    })
    stream.write(messageOf('listening', '{}'))
    while (!closed.signal.aborted) {
      await clock.sleep(WRITE_EVERY_MS, closed.signal)
      const text = listener.take()
      if (text !== '') stream.write(text)
    }
    stop()
  }

  return [
    keyed({
      method: 'GET',
      doc: EVENT_DOCS.stream,
      path: '/v1/events/stream',
      access: 'events:read',
      query: StreamQuery,
      async handle({ caller, query }) {
        const place = callerPlaceOf(caller)
        const holds = openEventTest(await withAllIds(visitors, caller, readFilter(caller, query)))
        const show = (event: StoredEvent) => JSON.stringify(presentEvent(event, caller.workspace.plan))
        audience.admit(place.workspace)
        return { body: null, stream: (stream) => listen(place, stream, holds, show).catch(() => stream.end()) }
      },
    }),
  ]
}

const messageOf = (name: string, data: string, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${data}\n\n`

/** What one listener is told of what it hears. `textOf` null: nobody may see the event any more. */
function openListener(textOf: (event: StoredEvent) => Promise<string | null>) {
  let waiting = ''
  let taken = 0
  let told = 0
  let skipped = 0
  let isQuiet = true
  /** What is heard is told in that order. */
  let last: Promise<void> = Promise.resolve()

  async function tell(event: StoredEvent): Promise<void> {
    // Whose it is cannot be told now: lists will have it.
    const text = await textOf(event).catch(() => null)
    if (text !== null) waiting += messageOf('event', text, event.requestId)
  }

  return {
    hear(event: StoredEvent): void {
      if (told >= EVENTS_PER_SECOND_MAX) skipped += 1
      else {
        told += 1
        last = last.then(() => tell(event))
      }
    },

    /** What there is to be written, several times a second. */
    take(): string {
      let text = waiting
      waiting = ''
      isQuiet &&= text === ''
      taken += 1
      if (taken % WRITES_PER_SECOND > 0) return text
      if (skipped > 0) text += messageOf('skipped', `{"count":${skipped}}`)
      // A comment: it keeps the connection open, and tells when the client is gone.
      else if (isQuiet) text = ':\n\n'
      told = 0
      skipped = 0
      isQuiet = true
      return text
    },
  }
}
