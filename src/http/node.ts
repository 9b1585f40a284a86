// The driver over node:http, for wherever the native one does not load. Requests of a connection are served one after the other:
// what follows a closing answer is never run.

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { must } from '../lib/must.ts'
import { BadFraming, HeadersTooLarge, PortBusy } from './errors.ts'
import { type Cut, cutMessages } from './node-cut.ts'
import { answerOnSocket, answerOver, requestFault, requestOf } from './node-message.ts'
import type { Listen, Receiver } from './port.ts'

/** Request line and headers as they were sent; what their names and values may be long together the dispatch says. */
const HEAD_BYTES_MAX = 32_768
const HEAD_MS = 10_000
const IDLE_MS = 12_000
const CHECK_MS = 1_000
/** Requests behind an unanswered one; whoever sends more is cut off. */
const WAITING_MAX = 64

/** What is answered when its turn has come: a request, or what is none. */
interface Waiting {
  readonly request: IncomingMessage | null
  run(): void
}

/** One connection. */
interface Turns {
  readonly cut: Cut
  readonly waiting: Waiting[]
  isBusy: boolean
  /** Nothing behind this is served. */
  isOver: boolean
  current: { readonly request: IncomingMessage; abandon(): boolean } | null
}

const OPTIONS = {
  insecureHTTPParser: false,
  maxHeaderSize: HEAD_BYTES_MAX,
  // One that is missing is refused by us.
  requireHostHeader: false,
  headersTimeout: HEAD_MS,
  // Bodies have the deadline of their route.
  requestTimeout: 0,
  keepAliveTimeout: IDLE_MS,
  connectionsCheckingInterval: CHECK_MS,
  noDelay: true,
} as const

function connect(server: Server, connection: 'connection' | 'secureConnection', receiver: Receiver): void {
  const connections = new WeakMap<Duplex, Turns>()

  function open(socket: Socket): void {
    const cut = cutMessages(socket, (fault) => refuse(socket, fault))
    connections.set(socket, { cut, waiting: [], isBusy: false, isOver: false, current: null })
  }

  const turnsOf = (socket: Duplex): Turns => must(connections.get(socket), 'an open connection')

  function end(turns: Turns): void {
    turns.isOver = true
    turns.cut.stop()
  }

  function enqueue(socket: Duplex, turns: Turns, next: Waiting): void {
    if (turns.isOver) return
    if (!turns.isBusy) {
      turns.isBusy = true
      next.run()
    } else if (turns.waiting.length < WAITING_MAX) turns.waiting.push(next)
    else {
      end(turns)
      socket.destroy()
    }
  }

  function proceed(turns: Turns): void {
    turns.current = null
    const next = turns.isOver ? undefined : turns.waiting.shift()
    turns.isBusy = next !== undefined
    next?.run()
  }

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const turns = turnsOf(socket)
    turns.cut.begin(request)
    const run = () => {
      const raw = answerOver(request, response, () => end(turns))
      turns.current = { request, abandon: raw.abandon }
      response.once('finish', () => proceed(turns))
      response.once('close', raw.abandon)
      const fault = requestFault(request)
      const rawRequest = requestOf(request)
      if (fault === null) receiver.serve(raw, rawRequest)
      else receiver.refuse(raw, fault, rawRequest)
    }
    enqueue(socket, turns, { request, run })
  }

  /** Ends the connection for what has arrived, when all that came before it is answered. */
  function refuse(socket: Duplex, fault: Error): void {
    const turns = turnsOf(socket)
    const { current, waiting, cut } = turns
    const { request: last = current?.request ?? null } = waiting.at(-1) ?? {}
    // A request whose body this is has none.
    const broken = last === null || last.complete ? null : last
    const { method, url } = broken ?? cut.unread()
    const rawRequest = requestOf({ method, url, rawHeaders: [] })
    cut.stop()
    const refusal: Waiting = {
      request: null,
      run() {
        turns.isOver = true
        receiver.refuse(answerOnSocket(socket), fault, rawRequest)
      },
    }
    if (broken !== null && broken !== current?.request) waiting.pop()
    else if (broken !== null && current !== null) {
      if (!current.abandon()) {
        end(turns)
        socket.destroy()
        return
      }
      turns.isBusy = false
    }
    enqueue(socket, turns, refusal)
  }

  server.on(connection, open)
  server.on('request', serve)
  server.on('checkContinue', serve)
  server.on('checkExpectation', serve)
  server.on('connect', (_request, socket) => refuse(socket, new BadFraming('CONNECT is not served')))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const turns = connections.get(socket)
    if (turns?.isOver === true) return
    const isUnread = error.code?.startsWith('HPE_') === true && error.code !== 'HPE_INVALID_EOF_STATE'
    if (turns === undefined || !socket.writable || !isUnread) socket.destroy()
    else if (error.code === 'HPE_HEADER_OVERFLOW') refuse(socket, new HeadersTooLarge('the headers are too long'))
    else refuse(socket, new BadFraming('the message is not HTTP/1.1'))
  })
}

export const listenNode: Listen = async ({ host, port: wanted, isShared = false, tls }, receiver) => {
  const server: Server =
    tls === undefined
      ? createServer(OPTIONS)
      : createTlsServer({
          ...OPTIONS,
          handshakeTimeout: HEAD_MS,
          cert: readFileSync(tls.certFile),
          key: readFileSync(tls.keyFile),
        })
  // Node.js leaves out what is above a limit: none may be hidden.
  server.maxHeadersCount = 0
  connect(server, tls === undefined ? 'connection' : 'secureConnection', receiver)
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new PortBusy(host, wanted)))
    server.listen({ host, port: wanted, exclusive: true, ...(isShared ? { reusePort: true } : {}) }, resolve)
  })
  let isListening = true

  function stopListening(): void {
    // The close of an HTTP server would drop idle connections as well.
    if (isListening) NetServer.prototype.close.call(server)
    isListening = false
  }

  return {
    port: (server.address() as AddressInfo).port,
    stopListening,
    close() {
      stopListening()
      server.close()
      server.closeAllConnections()
    },
  }
}
