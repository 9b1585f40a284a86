// Route handlers from a Request to a Response: Next.js, and every other runtime of that shape (Bun, Deno, edge).

import { insistOn } from './call.ts'
import { type Judgement, type JudgeOptions, judge } from './judge.ts'
import type { Event } from './types.ts'
import { BODY_BYTES_MAX, type ReceiverOptions, readBytes, readDelivery } from './webhooks.ts'

/** `export const POST = webhookRoute({ secret, onEvent })`: 200 once `onEvent` is done, 401 to what is not genuine. */
export function webhookRoute(options: ReceiverOptions): (request: Request) => Promise<Response> {
  insistOn('webhookRoute', options, ['secret'])
  const { onEvent, bodyBytesMax = BODY_BYTES_MAX } = options
  return async (request) => {
    const body = request.body === null ? new Uint8Array(0) : await readBytes(chunksOf(request.body), bodyBytesMax)
    if (body === null) return Response.json({ error: 'The body is too long.' }, { status: 413 })
    const event = await readDelivery(body, request.headers, options)
    if (event === null) return Response.json({ error: 'The signature is not right.' }, { status: 401 })
    await onEvent(event)
    return Response.json({ received: true })
  }
}

export interface RouteGuardOptions extends JudgeOptions {
  /** Where the page put the id of its identification; default: the header `x-fingerpost-request-id`. */
  readonly requestIdOf?: (request: Request) => unknown
  /** Answers a request that does not pass; default: 403 with the reason. */
  readonly onRefused?: (judgement: Judgement & { passes: false }, request: Request) => Response | Promise<Response>
}

/**
 * Runs `handle` for requests whose identification is fresh and not refused. It gets the event, null when the service was away, and
 * whatever else the framework passes to its handlers.
 */
export function guarded<Rest extends readonly unknown[]>(
  options: RouteGuardOptions,
  handle: (request: Request, event: Event | null, ...rest: Rest) => Response | Promise<Response>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const { requestIdOf = ({ headers }: Request) => headers.get('x-fingerpost-request-id'), onRefused = refuse } = options
  return async (request, ...rest) => {
    const judgement = await judge(await requestIdOf(request), options)
    return judgement.passes ? await handle(request, judgement.event, ...rest) : await onRefused(judgement, request)
  }
}

const refuse = ({ reason }: Judgement & { passes: false }): Response =>
  Response.json({ error: 'Refused.', reason }, { status: 403 })

/** Not every runtime can loop over a stream. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}
