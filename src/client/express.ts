// Express: a route that receives webhooks, and a guard in front of routes that only identified visitors may reach.

import { insistOn } from './call.ts'
import { type Judgement, type JudgeOptions, judge } from './judge.ts'
import type { Event } from './types.ts'
import { BODY_BYTES_MAX, type ReceiverOptions, readBytes, readDelivery } from './webhooks.ts'

/** What `guard` leaves for handlers behind it. They have locals of their own, of which nothing is known here: Express calls them any. */
// biome-ignore lint/suspicious/noExplicitAny: with unknown, what other handlers left there could not be read.
export type GuardedLocals = Record<string, any> & { fingerpost?: Event | null }
/** What is used of a request and a response of Express 4 and 5. */
export interface ExpressRequest extends AsyncIterable<Uint8Array> {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body?: unknown
}
export interface ExpressResponse {
  readonly locals: GuardedLocals
  status(code: number): { json(body: unknown): unknown }
}
export type ExpressNext = (error?: unknown) => void
type Handler<Request extends ExpressRequest, Response extends ExpressResponse> = (
  request: Request,
  response: Response,
  next: ExpressNext,
) => Promise<void>

/** Answers 200 once `onEvent` is done, 401 to what is not genuine. Mount it before `express.json()`, or behind `express.raw()`. */
export function webhookReceiver(options: ReceiverOptions): Handler<ExpressRequest, ExpressResponse> {
  insistOn('webhookReceiver', options, ['secret'])
  const { onEvent, bodyBytesMax = BODY_BYTES_MAX } = options
  return passingErrors(async (request, response) => {
    const body = await bodyOf(request, bodyBytesMax)
    if (body === null) return void response.status(413).json({ error: 'The body is too long.' })
    const event = await readDelivery(body, request.headers, options)
    if (event === null) return void response.status(401).json({ error: 'The signature is not right.' })
    await onEvent(event)
    response.status(200).json({ received: true })
  })
}

export interface GuardOptions<Request extends ExpressRequest, Response extends ExpressResponse> extends JudgeOptions {
  /** Where the page put the id of its identification; default: the header `x-fingerpost-request-id`. */
  readonly requestIdOf?: (request: Request) => unknown
  /** Answers a request that does not pass; default: 403 with the reason. */
  readonly onRefused?: (judgement: Judgement & { passes: false }, request: Request, response: Response) => unknown
}

/** Lets requests through whose identification is fresh and not refused; it is in `response.locals.fingerpost`, null when the service was away. */
export function guard<
  Request extends ExpressRequest = ExpressRequest,
  Response extends ExpressResponse = ExpressResponse,
>(options: GuardOptions<Request, Response>): Handler<Request, Response> {
  const { requestIdOf = (request: Request) => request.headers['x-fingerpost-request-id'], onRefused = refuse } = options
  return passingErrors(async (request, response, next) => {
    const judgement = await judge(requestIdOf(request), options)
    if (!judgement.passes) return void (await onRefused(judgement, request, response))
    response.locals.fingerpost = judgement.event
    next()
  })
}

const refuse = ({ reason }: Judgement & { passes: false }, _request: unknown, response: ExpressResponse) =>
  response.status(403).json({ error: 'Refused.', reason })

/** Express 4 hears of a failure by `next` alone. */
const passingErrors =
  <Request extends ExpressRequest, Response extends ExpressResponse>(
    handle: Handler<Request, Response>,
  ): Handler<Request, Response> =>
  (request, response, next) =>
    handle(request, response, next).catch(next)

async function bodyOf(request: ExpressRequest, bytesMax: number): Promise<Uint8Array | string | null> {
  const { body } = request
  if (typeof body === 'string' || body instanceof Uint8Array) return body.length > bytesMax ? null : body
  if (body !== undefined) throw new TypeError('webhookReceiver needs the raw body: mount it before express.json().')
  return await readBytes(request, bytesMax)
}
