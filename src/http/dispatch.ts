// What answers requests wherever they come from: routes, refusals for what has none, and the exchanges that serve them. A listener
// hands it requests as its driver makes them.

import type { Clock } from '../lib/clock.ts'
import { newCounts, type SharedCounts } from '../lib/counts.ts'
import { assert, must } from '../lib/must.ts'
import { within } from '../lib/within.ts'
import { BadFraming, MethodNotAllowed, RouteUnknown } from './errors.ts'
import { openExchanges } from './exchange.ts'
import { wantedHeaders } from './framing.ts'
import type { HostsConfig } from './hosts.ts'
import type {
  Handler,
  HttpHeader,
  HttpLog,
  HttpRequest,
  HttpResponse,
  Observe,
  Present,
  RouteOptions,
} from './message.ts'
import type { RawRequest, RawResponse } from './port.ts'
import type { Route } from './request.ts'
import { openRouter, type Resource } from './router.ts'
import { headersFault, openPresenter } from './write.ts'

export interface DispatchConfig {
  /** Sum of header names and values. Default 16,384; the server itself may drop requests above 4 KB. */
  readonly headersBytesMax?: number
  /** Requests being served at once; more are refused. The server does not tell idle connections, so they are not counted. */
  readonly inFlightMax: number
  /** Where all threads of the process count them. Default: this dispatch counts its own. */
  readonly inFlightCounts?: SharedCounts
  /** Default: no bound. */
  readonly perHost?: HostsConfig
  readonly clock: Clock
  readonly log: HttpLog
  readonly present: Present
  readonly observe: Observe
  /** Told of each route that is served. */
  readonly declare?: (pattern: string, method: Method) => void
  /** Called once per response, refusals included: what every answer carries. */
  readonly responseHeaders?: () => readonly HttpHeader[]
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'HEAD'

export interface Routes {
  /**
   * Serves `method` on `pattern` (`/a/:id`, `/a/*`); a GET route serves HEAD too. Add all routes in the tick in which the listener
   * was opened: until then nothing is read from a connection.
   */
  route(method: Method, pattern: string, handler: Handler, options?: RouteOptions): void
  /** Answers for unknown paths, from the headers alone; by default the presented RouteUnknown. */
  notFound(respond: (request: HttpRequest) => HttpResponse): void
  inFlight(): number
  /** Closes each connection with its next answer; resolves when nothing is in flight or after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>
}

/** A request as the driver makes it, valid within the call. */
export type Serve = (raw: RawResponse, rawRequest: RawRequest) => void

export interface Dispatch extends Routes {
  readonly serve: Serve
  /** Answers what cannot be served, as the route would that it is for. */
  refuse(raw: RawResponse, fault: Error, rawRequest: RawRequest): void
  /** Takes over what has no route here, from the next request on. */
  passOn(elsewhere: Serve): void
  close(): void
}

const BODY_BYTES_MAX = 65_536
const DEADLINE_MS = 10_000
const METHODS = new Map(
  ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'].map((name) => [
    name.toLowerCase(),
    name,
  ]),
)

export function openDispatch(config: DispatchConfig): Dispatch {
  const { clock, log } = config
  const presenter = openPresenter(config.present, config.responseHeaders ?? null, log)
  const exchanges = openExchanges({
    clock,
    log,
    presenter,
    observe: config.observe,
    headersBytesMax: config.headersBytesMax ?? 16_384,
    inFlightMax: config.inFlightMax,
    inFlightCounts: config.inFlightCounts ?? newCounts(1),
    perHost: config.perHost ?? { max: 0, hostOf: () => null },
  })
  const router = openRouter<Route>()
  const refused = new Map<Resource<Route>, Route>()
  let unknown = refusal('(unknown)', () => presenter.present(new RouteUnknown('no such path'), '(unknown)'))
  let elsewhere: Serve | null = null

  function makeRoute(pattern: string, handler: Handler, options: RouteOptions): Route {
    const deadlineMs = options.deadlineMs ?? DEADLINE_MS
    const responseHeaders = options.responseHeaders ?? []
    assert(headersFault(responseHeaders) === null, `${pattern} has headers that can be sent`)
    return {
      pattern,
      handler,
      before: options.before ?? null,
      wanted: wantedHeaders(options.headers ?? []),
      bodyBytesMax: options.bodyBytesMax ?? BODY_BYTES_MAX,
      borrowBody: options.borrowBody ?? false,
      deadlineMs,
      deadlines: exchanges.deadlines.queue(deadlineMs),
      responseHeaders,
    }
  }

  /** A route which answers from the headers whatever the body. */
  function refusal(
    pattern: string,
    respond: (request: HttpRequest) => HttpResponse,
    responseHeaders: readonly HttpHeader[] = [],
  ): Route {
    return makeRoute(pattern, respond, { before: respond, responseHeaders })
  }

  /** Of a method that no server but a proxy has. */
  const faultOf = (verb: string): Error | null => (verb === 'connect' ? new BadFraming('CONNECT is for proxies') : null)
  const methodOf = (verb: string) => METHODS.get(verb) ?? 'OTHER'

  const routeOf = (resource: Resource<Route>, verb: string) =>
    resource.methods.get(verb) ?? must(refused.get(resource), 'a route for other methods')

  return {
    serve(raw, rawRequest) {
      const verb = rawRequest.getMethod()
      const path = rawRequest.getUrl()
      const found = router.find(path)
      const method = methodOf(verb)
      if (found === null) {
        if (elsewhere === null) exchanges.serve(raw, rawRequest, unknown, method, path, {}, faultOf(verb))
        else elsewhere(raw, rawRequest)
        return
      }
      const { resource, params } = found
      exchanges.serve(raw, rawRequest, routeOf(resource, verb), method, path, params, faultOf(verb))
    },

    refuse(raw, fault, rawRequest) {
      const verb = rawRequest.getMethod()
      const path = rawRequest.getUrl()
      const found = router.find(path)
      const route = found === null ? unknown : routeOf(found.resource, verb)
      exchanges.serve(raw, rawRequest, route, methodOf(verb), path, {}, fault)
    },

    passOn(serve) {
      elsewhere = serve
    },

    route(method, pattern, handler, options = {}) {
      const resource = router.resource(pattern)
      const route = makeRoute(pattern, handler, options)
      resource.methods.set(method.toLowerCase(), route)
      config.declare?.(pattern, method)
      if (method === 'GET') resource.methods.set('head', resource.methods.get('head') ?? route)
      const allow = [...resource.methods.keys()].map((verb) => verb.toUpperCase()).join(', ')
      refused.set(
        resource,
        refusal(
          pattern,
          () => presenter.present(new MethodNotAllowed(allow), pattern),
          options.responseHeaders ?? refused.get(resource)?.responseHeaders,
        ),
      )
    },

    notFound(respond) {
      unknown = refusal('(unknown)', respond)
    },

    inFlight: exchanges.inFlight,

    async drain(deadlineMs) {
      await within(clock, deadlineMs, exchanges.drained())
    },

    close: exchanges.close,
  }
}
