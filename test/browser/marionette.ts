// Drives Firefox by Marionette, the protocol under its WebDriver: lines of JSON with their length in front, over TCP.

import { connect, type Socket } from 'node:net'

export type Marionette = {
  send(command: string, parameters?: Readonly<Record<string, unknown>>): Promise<unknown>
  close(): void
}

type Waiting = { resolve(value: unknown): void; reject(error: Error): void }

const connectMsMax = 240_000

/** Connects as soon as the browser listens, and begins a WebDriver session. */
export async function openMarionette(port: number): Promise<Marionette> {
  const socket = await connectWhenReady(port)
  const waiting = new Map<number, Waiting>()
  let last = 0
  readFrames(socket, (frame) => {
    if (!Array.isArray(frame)) return
    const [, id, error, result] = frame as [number, number, { message?: string } | null, unknown]
    const one = waiting.get(id)
    waiting.delete(id)
    if (error === null) one?.resolve(result)
    else one?.reject(new Error(error.message ?? 'refused'))
  })
  socket.on('close', () => {
    for (const one of waiting.values()) one.reject(new Error('Marionette hung up'))
  })
  const send: Marionette['send'] = (command, parameters = {}) =>
    new Promise((resolve, reject) => {
      const id = ++last
      waiting.set(id, { resolve, reject })
      const text = JSON.stringify([0, id, command, parameters])
      socket.write(`${Buffer.byteLength(text)}:${text}`)
    })
  await send('WebDriver:NewSession')
  return { send, close: () => socket.destroy() }
}

async function connectWhenReady(port: number): Promise<Socket> {
  const until = performance.now() + connectMsMax
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const outcome = await new Promise<Error | null>((resolve) => {
      socket.once('connect', () => resolve(null))
      socket.once('error', resolve)
    })
    if (outcome === null) return socket
    if (performance.now() > until) throw outcome
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function readFrames(socket: Socket, take: (frame: unknown) => void): void {
  let rest = Buffer.alloc(0)
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const colon = rest.indexOf(58)
      if (colon < 0) return
      const end = colon + 1 + Number.parseInt(rest.toString('latin1', 0, colon), 10)
      if (rest.length < end) return
      take(JSON.parse(rest.toString('utf8', colon + 1, end)))
      rest = rest.subarray(end)
    }
  })
}
