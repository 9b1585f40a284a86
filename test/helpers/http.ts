// A server under test and raw sockets to reach it: what was sent, what came back, and whether the other side closed.
import { connect, type Socket } from 'node:net'
import { MessageChannel } from 'node:worker_threads'
import { openDispatch } from '../../src/http/dispatch.ts'
import {
  BadFraming,
  BodyTooLarge,
  DeadlineExceeded,
  HeadersTooLarge,
  MethodNotAllowed,
  RouteUnknown,
  TooManyInFlight,
} from '../../src/http/errors.ts'
import { openForward } from '../../src/http/forward.ts'
import { serveForwarded } from '../../src/http/forwarded.ts'
import type { HttpResponse } from '../../src/http/message.ts'
import { type Driver, type HttpConfig, type OwnHttp, openHttp } from '../../src/http/server.ts'
import { isNativePresent } from '../../src/http/uws.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openLine } from '../../src/lib/line.ts'

export interface Observation {
  readonly pattern: string
  readonly method: string
  readonly status: number
}

export interface TestServer extends OwnHttp {
  readonly observed: Observation[]
  readonly warnings: string[]
  readonly errors: string[]
}

const statuses = new Map<unknown, number>([
  [BadFraming, 400],
  [HeadersTooLarge, 431],
  [BodyTooLarge, 413],
  [DeadlineExceeded, 503],
  [TooManyInFlight, 503],
  [RouteUnknown, 404],
  [MethodNotAllowed, 405],
])

export function present(error: unknown): HttpResponse {
  const kind = error instanceof Error ? error.constructor : null
  return {
    status: statuses.get(kind) ?? 500,
    body: JSON.stringify({ error: error instanceof Error ? error.name : 'thrown' }),
  }
}

interface Noted {
  readonly observed: Observation[]
  readonly warnings: string[]
  readonly errors: string[]
}

const configOf = ({ observed, warnings, errors }: Noted, config: Partial<HttpConfig>): HttpConfig => ({
  host: '127.0.0.1',
  port: 0,
  inFlightMax: 1_000,
  clock: systemClock,
  log: { warn: (_, message) => warnings.push(message), error: (_, message) => errors.push(message) },
  present,
  observe: (pattern, method, status) => observed.push({ pattern, method, status }),
  ...config,
})

export async function openTestServer(config: Partial<HttpConfig> = {}): Promise<TestServer> {
  const noted: Noted = { observed: [], warnings: [], errors: [] }
  return { ...(await openHttp(configOf(noted, config))), ...noted }
}

/** Those that this Node.js has. */
export const DRIVERS: readonly Driver[] = isNativePresent() ? ['uws', 'node'] : ['node']

/** A server without a route, and the routes at the other end of a line that it passes everything on to. */
export async function openForwardedServer(config: Partial<HttpConfig> = {}): Promise<TestServer> {
  const noted: Noted = { observed: [], warnings: [], errors: [] }
  const listener = await openHttp(configOf(noted, config))
  const dispatch = openDispatch(configOf(noted, config))
  const { port1, port2 } = new MessageChannel()
  const tell = (error: unknown) => noted.errors.push(String(error))
  const end = serveForwarded(openLine(port1, tell), dispatch.serve)
  listener.passOn(openForward(openLine(port2, tell)))
  return {
    ...{ ...listener, ...dispatch, ...noted },
    close() {
      listener.close()
      end()
      dispatch.close()
      port1.close()
    },
  }
}

export interface Talk {
  readonly socket: Socket
  /** All that came back, as latin1. */
  text(): string
  /** The statuses in order, then 'closed'; '' while there is nothing. */
  outcome(): string
  closed(): boolean
  /** Resolves when the outcome is one of `wanted` (separated by '|') and stays so, or after `ms`. */
  until(wanted: string, ms?: number): Promise<string>
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export const talk = (port: number, ...segments: string[]): Talk => talkFrom('127.0.0.1', port, ...segments)

/** From another address of loopback. */
export function talkFrom(localAddress: string, port: number, ...segments: string[]): Talk {
  let received = ''
  let closed = false
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.setNoDelay(true)
  socket.on('data', (data) => {
    received += data.toString('latin1')
  })
  socket.on('error', () => {
    closed = true
  })
  socket.on('close', () => {
    closed = true
  })
  const sending = async () => {
    for (const [i, segment] of segments.entries()) {
      if (i > 0) await pause(30)
      if (!socket.destroyed) socket.write(segment, 'latin1')
    }
  }
  void sending()

  const outcome = () => {
    const found = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => match[1] as string)
    return [...found, ...(closed ? ['closed'] : [])].join(' ')
  }
  return {
    socket,
    text: () => received,
    outcome,
    closed: () => closed,
    async until(wanted, ms = 30_000) {
      const accepted = wanted.split('|')
      const endMs = Date.now() + ms
      while (!accepted.includes(outcome()) && Date.now() < endMs) await pause(5)
      await pause(60)
      return outcome()
    },
  }
}

/** Sends the segments on a connection of their own and gives what came of it. */
export async function exchange(port: number, wanted: string, ...segments: string[]): Promise<Talk> {
  const conversation = talk(port, ...segments)
  await conversation.until(wanted)
  conversation.socket.destroy()
  return conversation
}

export function bodyOf(text: string): string {
  return text.slice(text.indexOf('\r\n\r\n') + 4)
}

export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const worker = async () => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
}
