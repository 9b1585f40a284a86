// `fingerpost webhooks listen`: takes what happens in a test environment from the service and posts it to a receiver under
// development, signed as a delivery would be, whatever that receiver's address is.

import { FingerpostError } from '../client/call.ts'
import { HEARD, type HeardEvent, listenTo } from '../client/listen.ts'
import { deliveryHeaders } from '../dispatcher/envelope.ts'
import type { RandomBytes } from '../domain/ids.ts'
import { EVENT_TYPES, type EventType, type WebhookShape } from '../domain/webhook.ts'
import type { Clock } from '../lib/clock.ts'
import { Told } from '../lib/failures.ts'

export interface ListenWanted {
  /** Where the service is. */
  readonly service: string
  /** A secret key of a test environment. */
  readonly key: string
  readonly forward: string
  readonly shape: WebhookShape
  /** null: one is made and told. */
  readonly secret: string | null
}

export interface ListenNeeds {
  readonly clock: Clock
  readonly random: RandomBytes
  readonly version: string
  readonly say: (line: string) => void
}

/** The service does not let us listen. */
export class CannotListen extends Told {
  override readonly name = 'CannotListen'
}

const SECRET_BYTES = 32
const FORWARD_MS_MAX = 10_000

/** Until `signal` aborts, over lost connections; throws CannotListen when the service refuses. */
export async function listen(needs: ListenNeeds, wanted: ListenWanted, signal: AbortSignal): Promise<void> {
  const { clock, random, say } = needs
  const { service, key, forward: url } = wanted
  const secret = wanted.secret ?? `whsec_${Buffer.from(random(SECRET_BYTES)).toString('base64')}`
  say(`signing with ${secret}`)
  const heard = listenTo({ baseUrl: service, key, sleep: (ms) => clock.sleep(ms, signal) }, HEARD, {
    signal,
    onConnected: () => say(`listening; forwarding to ${url}`),
    onLost: ({ message }) => say(`${service}: ${message}`),
  })
  try {
    for await (const event of heard) {
      // Another one is of a type that this version does not know.
      if (isKnown(event)) say(await forward(needs, wanted, secret, event))
    }
  } catch (error) {
    if (!(error instanceof FingerpostError)) throw error
    throw new CannotListen(`${service} answers ${error.status}: ${error.message}`, { cause: error })
  }
}

type Message = HeardEvent & { readonly type: EventType }
const isKnown = (event: HeardEvent): event is Message => EVENT_TYPES.includes(event.type as EventType)

async function forward(
  { clock, version }: ListenNeeds,
  { forward: url, shape }: ListenWanted,
  secret: string,
  { eventId, type, body, plain }: Message,
): Promise<string> {
  const text = shape === 'A' ? plain?.body : body
  if (text === undefined || text === null) return `${type} ${eventId}: not told in shape ${shape}`
  const sent = Buffer.from(text)
  const userAgent = `Fingerpost-Webhooks/${version}`
  const secrets = { main: secret, next: null }
  const headers = deliveryHeaders({ shape, type, eventId, body: sent, secrets, nowMs: clock.now(), userAgent })
  const startedAt = clock.monotonic()
  try {
    const limit = AbortSignal.timeout(FORWARD_MS_MAX)
    const { status } = await fetch(url, { method: 'POST', headers, body: sent, redirect: 'manual', signal: limit })
    return `${type} ${eventId}: ${status} in ${Math.round(clock.monotonic() - startedAt)} ms`
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown }
    return `${type} ${eventId}: ${cause instanceof Error ? cause.message : (error as Error).message}`
  }
}
