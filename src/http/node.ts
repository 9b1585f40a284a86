// The driver over node:http, for wherever the native one does not load. Requests of a connection are served one after the other:
// what follows a closing answer is never run.

import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { BadFraming, HeadersTooLarge, PortBusy } from './errors.ts'
import { type ChunkWatch, watchChunks } from './node-chunks.ts'
import { answerOnSocket, answerOver, pathOf, requestFault, requestOf } from './node-message.ts'
import type { Listen, Receiver } from './port.ts'

/** Request line and headers as they were sent; what their names and values may be long together the dispatch says. */
const HEAD_BYTES_MAX = 32_768
const HEAD_MS = 10_000
const IDLE_MS = 12_000
const CHECK_MS = 1_000
/** Requests behind an unanswered one; whoever sends more is cut off. */
const WAITING_MAX = 64

const REQUEST_LINES = /(?:^|\r\n)[A-Z]+ \S+ HTTP\/1\.[01]\r\n/g

/** What the parser says of a message that is none. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

/** One connection. */
interface Turns {
  readonly waiting: (() => void)[]
  isBusy: boolean
  /** Nothing behind this is served. */
  isOver: boolean
  readonly chunks: ChunkWatch
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

const extended = () => new BadFraming('a chunk has an extension')

/** The path of the request whose head a packet holds that the parser gave up in, as far as it can be told. */
function pathIn({ rawPacket, bytesParsed }: ParseError): string | null {
  const heads = rawPacket?.toString('latin1', 0, bytesParsed ?? 0).match(REQUEST_LINES)
  const target = heads?.at(-1)?.trim().split(' ')[1]
  return target === undefined ? null : pathOf({ url: target })
}

function connect(server: Server, isSecure: boolean, receiver: Receiver): void {
  const connections = new WeakMap<Duplex, Turns>()

  function turnsOf(socket: Duplex): Turns {
    let turns = connections.get(socket)
    if (turns === undefined) {
      turns = { waiting: [], isBusy: false, isOver: false, chunks: watchChunks(), current: null }
      connections.set(socket, turns)
    }
    return turns
  }

  function enqueue(socket: Duplex, turns: Turns, run: () => void): void {
    if (turns.isOver) return
    if (!turns.isBusy) {
      turns.isBusy = true
      run()
    } else if (turns.waiting.length < WAITING_MAX) turns.waiting.push(run)
    else {
      turns.isOver = true
      socket.destroy()
    }
  }

  function next(turns: Turns): void {
    turns.current = null
    const run = turns.isOver ? undefined : turns.waiting.shift()
    turns.isBusy = run !== undefined
    run?.()
  }

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const turns = turnsOf(socket)
    const isFramed = turns.chunks.begin(request)
    enqueue(socket, turns, () => {
      const raw = answerOver(request, response, () => {
        turns.isOver = true
      })
      turns.current = { request, abandon: raw.abandon }
      response.once('finish', () => next(turns))
      response.once('close', raw.abandon)
      const fault = isFramed ? requestFault(request) : extended()
      if (fault === null) receiver.serve(raw, requestOf(request))
      else receiver.refuse(raw, fault, pathOf(request))
    })
  }

  function refuse(socket: Duplex, fault: Error, path: string | null = null): void {
    const turns = turnsOf(socket)
    const { current } = turns
    const answer = () => {
      turns.isOver = true
      receiver.refuse(answerOnSocket(socket), fault, path)
    }
    if (current === null || current.request.complete) {
      enqueue(socket, turns, answer)
      return
    }
    // The body of what is being served is none.
    const isUnanswered = current.abandon()
    turns.isBusy = false
    if (isUnanswered) enqueue(socket, turns, answer)
    else socket.destroy()
  }

  server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.prependListener('data', (bytes: Buffer) => {
      const turns = turnsOf(socket)
      if (!turns.isOver && !turns.chunks.packet(bytes))
        refuse(socket, extended(), turns.current === null ? null : pathOf(turns.current.request))
    })
  })
  server.on('request', serve)
  server.on('checkContinue', serve)
  server.on('checkExpectation', serve)
  server.on('connect', (_request, socket) => refuse(socket, new BadFraming('CONNECT is not served')))
  server.on('clientError', (error: ParseError, socket) => {
    if (turnsOf(socket).isOver) return
    if (!socket.writable || error.code === 'ECONNRESET' || error.code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy()
    else if (error.code === 'HPE_HEADER_OVERFLOW')
      refuse(socket, new HeadersTooLarge('the headers are too long'), pathIn(error))
    else if (error.code?.startsWith('HPE_') === true && error.code !== 'HPE_INVALID_EOF_STATE')
      refuse(socket, new BadFraming('the message is not HTTP/1.1'), pathIn(error))
    else socket.destroy()
  })
}

export const listenNode: Listen = async ({ host, port: wanted, isShared = false, tls }, receiver) => {
  const server: Server =
    tls === undefined
      ? createServer(OPTIONS)
      : createTlsServer({ ...OPTIONS, cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) })
  // Node.js leaves out what is above a limit: none may be hidden.
  server.maxHeadersCount = 0
  connect(server, tls !== undefined, receiver)
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
