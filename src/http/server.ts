// The HTTP server: binds a port, finds the route, and hands every request to an exchange. Nothing else knows uWebSockets.
import uWS, { type us_listen_socket } from 'uWebSockets.js'
import type { Clock } from '../lib/clock.ts'
import { assert, must } from '../lib/must.ts'
import { MethodNotAllowed, PortBusy, RouteUnknown } from './errors.ts'
import { openExchanges } from './exchange.ts'
import { wantedHeaders } from './framing.ts'
import type { HostsConfig } from './hosts.ts'
import type { Handler, Header, HttpLog, HttpRequest, HttpResponse, Observe, Present, RouteOptions } from './message.ts'
import type { Route } from './request.ts'
import { openRouter, type Resource } from './router.ts'
import { headersFault, openPresenter } from './write.ts'

export interface HttpConfig {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  /** Sum of header names and values. Default 16,384; the server itself may drop requests above 4 KB. */
  readonly headersBytesMax?: number
  /** Requests being served at once; more are refused. The server does not tell idle connections, so they are not counted. */
  readonly inFlightMax: number
  /** Default: no bound. */
  readonly perHost?: HostsConfig
  readonly clock: Clock
  readonly log: HttpLog
  readonly present: Present
  readonly observe: Observe
  /** Called once per response, refusals included: what every answer carries. */
  readonly responseHeaders?: () => readonly Header[]
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'HEAD'

export interface Http {
  readonly port: number
  /** False when the slow JavaScript substitute of the server was loaded. */
  readonly native: boolean
  /**
   * Serves `method` on `pattern` (`/a/:id`, `/a/*`); a GET route serves HEAD too. Add all routes in the tick in which
   * `openHttp` resolved: until then nothing is read from a connection.
   */
  route(method: Method, pattern: string, handler: Handler, options?: RouteOptions): void
  /** Answers for unknown paths, from the headers alone; by default the presented RouteUnknown. */
  notFound(respond: (request: HttpRequest) => HttpResponse): void
  inFlight(): number
  /** Takes no new connections; those open go on. */
  stopListening(): void
  /** Closes each connection with its next answer; resolves when nothing is in flight or after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>
  /** Drops what is left. */
  close(): void
}

// LIBUS_LISTEN_EXCLUSIVE_PORT: without it a second process would share the port and take half of the requests.
const EXCLUSIVE_PORT = 1
const SWEEP_MS = 100
const BODY_BYTES_MAX = 65_536
const DEADLINE_MS = 10_000
const METHODS = new Map(
  ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'].map((name) => [
    name.toLowerCase(),
    name,
  ]),
)

// The typings lack the form with both host and options, and `close`, which the substitute has not.
interface App {
  any(pattern: string, handler: Parameters<uWS.TemplatedApp['any']>[1]): unknown
  listen(host: string, port: number, options: number, bound: (socket: us_listen_socket | false) => void): unknown
  close?(): void
}

/** True when the native server was loaded and not its JavaScript substitute. */
export function isNative(): boolean {
  return Function.prototype.toString.call(uWS.App).includes('[native code]')
}

/** Lets no answer name the server and its version. */
function beSilent(): void {
  const { _cfg } = uWS as unknown as { readonly _cfg?: (key: string) => void }
  _cfg?.('silent')
}

/** Binds the port for this process alone. Fails with PortBusy when that is impossible. */
export async function openHttp(config: HttpConfig): Promise<Http> {
  const { host, clock, log, tls } = config
  const presenter = openPresenter(config.present, config.responseHeaders ?? null, log)
  const exchanges = openExchanges({
    clock,
    log,
    presenter,
    observe: config.observe,
    headersBytesMax: config.headersBytesMax ?? 16_384,
    inFlightMax: config.inFlightMax,
    perHost: config.perHost ?? { max: 0, hostOf: () => null },
  })
  const router = openRouter<Route>()
  const refused = new Map<Resource<Route>, Route>()
  let unknown = refusal('(unknown)', () => presenter.present(new RouteUnknown('no such path'), '(unknown)'))

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
    responseHeaders: readonly Header[] = [],
  ): Route {
    return makeRoute(pattern, respond, { before: respond, responseHeaders })
  }

  beSilent()
  const app = (tls === undefined
    ? uWS.App()
    : uWS.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })) as unknown as App
  app.any('/*', (raw, rawRequest) => {
    const verb = rawRequest.getMethod()
    const path = rawRequest.getUrl()
    const found = router.find(path)
    const method = METHODS.get(verb) ?? 'OTHER'
    if (found === null) return exchanges.serve(raw, rawRequest, unknown, method, path, {})
    const { resource, params } = found
    const route = resource.methods.get(verb) ?? must(refused.get(resource), 'a route for other methods')
    exchanges.serve(raw, rawRequest, route, method, path, params)
  })
  let listening: us_listen_socket | null = await new Promise((resolve, reject) => {
    app.listen(host, config.port, EXCLUSIVE_PORT, (socket) => {
      if (socket === false) reject(new PortBusy(host, config.port))
      else resolve(socket)
    })
  })
  const port = uWS.us_socket_local_port(must(listening, 'a bound socket'))

  const closed = new AbortController()
  async function sweepUntilClosed(): Promise<void> {
    while (!closed.signal.aborted) {
      await clock.sleep(SWEEP_MS, closed.signal)
      exchanges.deadlines.sweep(clock.monotonic())
    }
  }
  void sweepUntilClosed()

  function stopListening(): void {
    if (listening !== null) uWS.us_listen_socket_close(listening)
    listening = null
  }

  return {
    port,
    native: isNative(),

    route(method, pattern, handler, options = {}) {
      const resource = router.resource(pattern)
      const route = makeRoute(pattern, handler, options)
      resource.methods.set(method.toLowerCase(), route)
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
    stopListening,

    async drain(deadlineMs) {
      const over = new AbortController()
      await Promise.race([exchanges.drained(), clock.sleep(deadlineMs, over.signal)])
      over.abort()
    },

    close() {
      stopListening()
      app.close?.()
      closed.abort()
    },
  }
}
