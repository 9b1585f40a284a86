// GET /v1/webhooks/listen: the events of a test environment as they happen, as server-sent events, for `fingerpost webhooks
// listen`. Nothing is stored and nothing is repeated: a webhook is what makes deliveries sure.

import type { Bus } from '../../bus/bus.ts'
import { bodyFor } from '../../dispatcher/envelope.ts'
import { LISTENING_EVERY_MS } from '../../dispatcher/listening.ts'
import { ApiError } from '../../domain/errors.ts'
import { Type } from '../../domain/schema.ts'
import { type EventType, plainEventOf } from '../../domain/webhook.ts'
import type { HttpStream } from '../../http/stream.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Payload } from '../../records/deliveries.ts'
import { onHint, publishHint } from '../../records/hints.ts'
import { openAudience } from '../audience.ts'
import { callerPlaceOf } from '../callers.ts'
import type { RouteDoc } from '../describe.ts'
import { type ApiRoute, keyed } from '../routes.ts'

/** What a body names where the id of a webhook would be. */
const LISTENER_ID = 'wh_00000000000000000000'

const LISTEN_DOC: RouteDoc = {
  id: 'listenToWebhooks',
  summary: 'Listen to the test environment',
  description:
    'Server-sent events, one for each event of the test environment while the connection is open, unsigned, at most once. `fingerpost webhooks listen` forwards them to a receiver under development. Takes a test key. A workspace may have ten of them per process.',
  answers: {
    200: { description: 'A stream without end.', schema: Type.String(), contentType: 'text/event-stream' },
  },
}

export interface WebhookListenNeeds {
  readonly bus: Bus
  readonly clock: Clock
}

export function webhookListenRoutes({ bus, clock }: WebhookListenNeeds): ApiRoute[] {
  const audience = openAudience()

  function listen(place: ReturnType<typeof callerPlaceOf>, stream: HttpStream): void {
    const leave = audience.join(place.workspace)
    const closed = new AbortController()
    const stop = onHint(bus, 'webhooks.heard', ({ workspace, env, eventId, type, payload }) => {
      if (workspace === place.workspace && env === place.env) stream.write(messageOf(eventId, type, payload))
    })
    stream.whenClosed(() => {
      leave()
      stop()
      closed.abort()
    })
    async function announce(): Promise<void> {
      while (!closed.signal.aborted) {
        publishHint(bus, 'webhooks.listening', place)
        // A comment: it keeps the connection open, and tells when the client is gone.
        stream.write(':\n\n')
        await clock.sleep(LISTENING_EVERY_MS, closed.signal)
      }
    }
    void announce()
  }

  return [
    keyed({
      method: 'GET',
      path: '/v1/webhooks/listen',
      access: 'webhooks:read',
      doc: LISTEN_DOC,
      handle({ caller }) {
        const place = callerPlaceOf(caller)
        if (place.env !== 'test') {
          throw new ApiError('insufficient_permissions', { message: 'Listening takes a key of the test environment.' })
        }
        audience.admit(place.workspace)
        return { body: null, stream: (stream) => listen(place, stream) }
      },
    }),
  ]
}

function messageOf(eventId: string, type: EventType, payload: Payload): string {
  const body = bodyFor({ id: LISTENER_ID, shape: 'B' }, payload)?.toString('utf8') ?? null
  const plainEvent = plainEventOf(type)
  const plain = plainEvent === null || payload.a === undefined ? null : { event: plainEvent, body: payload.a }
  return `id: ${eventId}\nevent: delivery\ndata: ${JSON.stringify({ eventId, type, body, plain })}\n\n`
}
