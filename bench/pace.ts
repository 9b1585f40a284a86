// Requests at an even rate: each is sent when it is due, whether earlier ones were answered or not, and its latency counts from that
// moment, also where it had to wait for a connection. (autocannon, given a rate, sends what a second allows at once and then pauses.)

import { connect, type Socket } from 'node:net'
import { atShare } from './measure.ts'

export interface Pace {
  readonly port: number
  readonly perSecond: number
  readonly seconds: number
  /** The bytes of the next request, with its Content-Length. */
  readonly next: () => string
}

export interface Paced {
  /** By second, of those answered while requests were sent. */
  readonly answered: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answered with another status than 200, or not at all. */
  readonly refused: number
}

/** Opened as they are needed; beyond, requests wait. */
const CONNECTIONS_MAX = 512
/** A machine that is full answers late, and whoever waits longer has left. */
const LAST_ANSWER_MS = 5_000
const TICK_MS = 1
const HEAD_END = '\r\n\r\n'

interface Connection {
  readonly socket: Socket
  dueMs: number
  text: string
}

/** The status of a whole answer, or null where some of it is missing. */
function statusOf(text: string): number | null {
  const headEnd = text.indexOf(HEAD_END)
  if (headEnd < 0) return null
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, headEnd))?.[1] ?? 0)
  return text.length < headEnd + HEAD_END.length + length ? null : Number(text.slice(9, 12))
}

const at = (sorted: readonly number[], share: number): number =>
  Math.round((atShare(sorted, share) ?? Number.NaN) * 10) / 10

export async function pace({ port, perSecond, seconds, next }: Pace): Promise<Paced> {
  const idle: Connection[] = []
  const waiting: number[] = []
  const latenciesMs: number[] = []
  const sockets = new Set<Socket>()
  let refused = 0
  let inTime = 0
  let sent = 0
  const total = Math.round(perSecond * seconds)
  const startMs = performance.now()

  function send(connection: Connection, dueMs: number): void {
    connection.dueMs = dueMs
    connection.text = ''
    connection.socket.write(next(), 'latin1')
  }

  function take(connection: Connection, chunk: string): void {
    connection.text += chunk
    const status = statusOf(connection.text)
    if (status === null) return
    const nowMs = performance.now()
    latenciesMs.push(nowMs - connection.dueMs)
    if (status !== 200) refused++
    else if (nowMs <= startMs + seconds * 1_000) inTime++
    const dueMs = waiting.shift()
    if (dueMs === undefined) idle.push(connection)
    else send(connection, dueMs)
  }

  function open(dueMs: number): void {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const connection: Connection = { socket, dueMs, text: '' }
    sockets.add(socket)
    socket.setEncoding('latin1')
    socket.on('connect', () => send(connection, dueMs))
    socket.on('data', (chunk: string) => take(connection, chunk))
    // Whoever waited on it is counted as not answered.
    socket.on('error', () => sockets.delete(socket))
    socket.on('close', () => sockets.delete(socket))
  }

  /** The one that has rested longest, so that none rests until the server closes it. */
  function rested(): Connection | undefined {
    for (;;) {
      const connection = idle.shift()
      if (connection === undefined || sockets.has(connection.socket)) return connection
    }
  }

  function begin(dueMs: number): void {
    const connection = rested()
    if (connection !== undefined) send(connection, dueMs)
    else if (sockets.size < CONNECTIONS_MAX) open(dueMs)
    else waiting.push(dueMs)
  }

  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const nowMs = performance.now() - startMs
      for (; sent < total && (sent * 1_000) / perSecond <= nowMs; sent++) begin(startMs + (sent * 1_000) / perSecond)
      const isLate = nowMs > seconds * 1_000 + LAST_ANSWER_MS
      if (sent < total || (latenciesMs.length < total && !isLate)) return
      clearInterval(timer)
      resolve()
    }, TICK_MS)
  })
  for (const socket of sockets) socket.destroy()
  const sorted = latenciesMs.sort((a, b) => a - b)
  return {
    answered: Math.round(inTime / seconds),
    p50Ms: at(sorted, 0.5),
    p99Ms: at(sorted, 0.99),
    refused: refused + total - sorted.length,
  }
}

/** A request as `next` gives it. */
export function requestText(path: string, headers: Readonly<Record<string, string>>, body: string): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = Buffer.byteLength(body, 'latin1')
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\n${fields.join('')}Content-Length: ${length}\r\n\r\n${body}`
}
