// The native driver: uWebSockets.js where a binary of it loads. What else its package brings is never loaded. Nothing else knows it.

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { must } from '../lib/must.ts'
import { PortBusy } from './errors.ts'
import type { Listen, RawRequest, RawResponse } from './port.ts'

interface App {
  any(pattern: string, handler: (raw: RawResponse, rawRequest: RawRequest) => void): unknown
  listen(host: string, port: number, options: number, bound: (socket: object | false) => void): unknown
  close(): void
}

interface Uws {
  App(): App
  SSLApp(options: { readonly cert_file_name: string; readonly key_file_name: string }): App
  us_socket_local_port(socket: object): number
  us_listen_socket_close(socket: object): void
  _cfg?(key: string): void
}

// LIBUS_LISTEN_EXCLUSIVE_PORT: without it a second process would share the port and take half of the requests.
const EXCLUSIVE_PORT = 1
const SHARED_PORT = 0

/** The binary for this platform and this Node, where the package keeps it: beside its module or in a folder of binaries. */
function load(): Uws | null {
  const require = createRequire(import.meta.url)
  const { platform, arch, versions } = process
  const name = `uws_${platform}_${arch}_${versions.modules}.node`
  try {
    const folder = dirname(require.resolve('uWebSockets.js'))
    const file = [join(folder, name), join(folder, '../binaries', name)].find((path) => existsSync(path))
    if (file === undefined) return null
    const uws = require(file) as Uws
    // Lets no answer name the server and its version.
    uws._cfg?.('silent')
    return uws
  } catch {
    return null
  }
}

let loaded: Uws | null | undefined

/** The native server, or null where none loads: on another Node, another platform or another C library. */
function native(): Uws | null {
  if (loaded === undefined) loaded = load()
  return loaded
}

export const isNativePresent = (): boolean => native() !== null

export const listenNative: Listen = async ({ host, port: wanted, isShared, tls }, receiver) => {
  const uws = must(native(), 'the native HTTP server')
  const app = tls === undefined ? uws.App() : uws.SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile })
  app.any('/*', receiver.serve)
  let listening: object | null = await new Promise((resolve, reject) => {
    app.listen(host, wanted, isShared === true ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
      if (socket === false) reject(new PortBusy(host, wanted))
      else resolve(socket)
    })
  })

  function stopListening(): void {
    if (listening !== null) uws.us_listen_socket_close(listening)
    listening = null
  }

  return {
    port: uws.us_socket_local_port(must(listening, 'a bound socket')),
    stopListening,
    close() {
      stopListening()
      app.close()
    },
  }
}
