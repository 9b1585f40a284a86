// The HTTP server: binds a port and hands every request to a dispatch. Nothing else knows uWebSockets.
import uWS, { type us_listen_socket } from 'uWebSockets.js'
import { must } from '../lib/must.ts'
import { type DispatchConfig, openDispatch, type Routes, type Serve } from './dispatch.ts'
import { PortBusy } from './errors.ts'

export interface HttpConfig extends DispatchConfig {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Other threads of this process listen on the same port, and the system spreads connections over all. Default false. */
  readonly isShared?: boolean
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
}

export interface Http extends Routes {
  readonly port: number
  /** False when the slow JavaScript substitute of the server was loaded. */
  readonly native: boolean
  /** Takes no new connections; those open go on. */
  stopListening(): void
  /** Drops what is left. */
  close(): void
}

export interface OwnHttp extends Http {
  /** What has no route here is served elsewhere from now on. */
  passOn(elsewhere: Serve): void
}

// LIBUS_LISTEN_EXCLUSIVE_PORT: without it a second process would share the port and take half of the requests.
const EXCLUSIVE_PORT = 1
const SHARED_PORT = 0

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
export async function openHttp(config: HttpConfig): Promise<OwnHttp> {
  const { host, tls } = config
  const dispatch = openDispatch(config)
  beSilent()
  const app = (tls === undefined
    ? uWS.App()
    : uWS.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })) as unknown as App
  app.any('/*', dispatch.serve)
  let listening: us_listen_socket | null = await new Promise((resolve, reject) => {
    app.listen(host, config.port, config.isShared === true ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
      if (socket === false) reject(new PortBusy(host, config.port))
      else resolve(socket)
    })
  })
  const port = uWS.us_socket_local_port(must(listening, 'a bound socket'))

  function stopListening(): void {
    if (listening !== null) uWS.us_listen_socket_close(listening)
    listening = null
  }

  return {
    ...dispatch,
    port,
    native: isNative(),
    stopListening,
    close() {
      stopListening()
      app.close?.()
      dispatch.close()
    },
  }
}
