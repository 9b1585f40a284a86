// A TCP proxy that stands between a process and a server and breaks the network, as told, for new and existing connections.

import { once, setMaxListeners } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { pause } from './processes.ts'
import { type Rng, rng } from './rng.ts'

type Direction = 'toServer' | 'toClient'

export type Mode =
  | { readonly kind: 'pass' }
  /** As a dead server: existing connections are reset, new ones as soon as they are made. */
  | { readonly kind: 'refuse' }
  /** As a lost route: nothing arrives and nobody is told; new connections are accepted. What was sent arrives when it ends. */
  | { readonly kind: 'blackhole'; readonly direction?: Direction }
  /** Every byte comes so much later, in each direction. */
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'trickle'; readonly bytesPerSecond: number }
  /** Each connection ends after so many further bytes in this direction, which still arrive. */
  | { readonly kind: 'cutAfter'; readonly direction: Direction; readonly bytes: number }
  /** The next requests reach the server in full; their connections end before a byte of the reply. */
  | { readonly kind: 'cutReply'; readonly times: number }
  /** A share of HTTP requests gets this status instead of reaching the server, or with `effect` instead of its reply. */
  | {
      readonly kind: 'http'
      readonly status: 500 | 503
      readonly share: number
      readonly seed: number
      readonly effect?: boolean
    }

export interface Counters {
  connections: number
  /** Bytes from a client that follow an answer, or begin a connection. */
  requests: number
  /** Connections that were reset or cut. */
  cut: number
  /** Requests answered with an HTTP error. */
  failed: number
  bytesToServer: number
  bytesToClient: number
}

export interface Proxy {
  readonly port: number
  readonly counters: Readonly<Counters>
  mode(mode: Mode): void
  /** RST to both ends of every connection there is. */
  reset(): void
  /** New connections go to this port of the same host. */
  lead(port: number): void
  close(): Promise<void>
}

interface Link {
  readonly client: Socket
  readonly server: Socket
  /** Who sent last: a request begins where the client speaks after the server. */
  turn: Direction | null
  /** What becomes of the request that is under way. */
  fate: 'pass' | 'cut' | 'fail'
  /** Forwarded since the mode was set. */
  bytes: Record<Direction, number>
  dead: boolean
}

const HELD_BYTES_MAX = 65_536
const SLICES_PER_SECOND = 20
const LINGER_MS = 1_000

/** Tells of the next change of the mode, to as many as there are connections. */
function openChange(): AbortController {
  const change = new AbortController()
  setMaxListeners(0, change.signal)
  return change
}

/** Listens on a free loopback port; passes everything until told otherwise. */
export async function openProxy({
  target,
}: {
  readonly target: { readonly host?: string; readonly port: number }
}): Promise<Proxy> {
  const links = new Set<Link>()
  const counters: Counters = { connections: 0, requests: 0, cut: 0, failed: 0, bytesToServer: 0, bytesToClient: 0 }
  let mode: Mode = { kind: 'pass' }
  let changed = openChange()
  let repliesToCut = 0
  let random: Rng = rng(0)
  let serverPort = target.port

  function end(link: Link): void {
    if (link.dead) return
    link.dead = true
    links.delete(link)
    counters.cut += 1
    link.client.resetAndDestroy()
    link.server.resetAndDestroy()
  }

  /** Resolves after `ms` or when the mode changes. */
  async function waitForChange(ms: number): Promise<void> {
    const { signal } = changed
    let wake = () => {}
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    const timer = Number.isFinite(ms) ? setTimeout(wake, ms) : undefined
    signal.addEventListener('abort', wake)
    await woken
    clearTimeout(timer)
    signal.removeEventListener('abort', wake)
  }

  function endWaits(): void {
    const before = changed
    changed = openChange()
    before.abort()
  }

  const isHeld = (direction: Direction) =>
    mode.kind === 'blackhole' && (mode.direction === undefined || mode.direction === direction)

  /** Called once per request, before its first bytes go on. */
  function begin(link: Link): void {
    counters.requests += 1
    link.fate = 'pass'
    if (mode.kind === 'cutReply' && repliesToCut > 0) {
      repliesToCut -= 1
      link.fate = 'cut'
    }
    if (mode.kind === 'http' && random.chance(mode.share)) link.fate = 'fail'
  }

  /** Answers in the place of the server, and reads what still comes so that the answer is not lost to a reset. */
  function answerError(link: Link, status: number): void {
    counters.failed += 1
    link.dead = true
    links.delete(link)
    link.server.resetAndDestroy()
    link.client.end(`HTTP/1.1 ${status} Injected\r\nContent-Length: 8\r\nConnection: close\r\n\r\ninjected`)
    link.client.resume()
    setTimeout(() => link.client.destroy(), LINGER_MS).unref()
  }

  /** Sends bytes on as the mode says; false when the connection is gone. */
  async function forward(link: Link, direction: Direction, bytes: Buffer): Promise<boolean> {
    const to = direction === 'toServer' ? link.server : link.client
    if (direction === 'toServer' && link.turn !== 'toServer') begin(link)
    link.turn = direction
    if (direction === 'toClient' && link.fate === 'cut') {
      end(link)
      return false
    }
    if (link.fate === 'fail' && mode.kind === 'http' && (direction === 'toClient' || mode.effect !== true)) {
      answerError(link, mode.status)
      return false
    }
    let rest = bytes
    while (rest.length > 0 && !link.dead) {
      let size = rest.length
      if (mode.kind === 'trickle')
        size = Math.min(size, Math.max(1, Math.floor(mode.bytesPerSecond / SLICES_PER_SECOND)))
      const left =
        mode.kind === 'cutAfter' && mode.direction === direction ? mode.bytes - link.bytes[direction] : Infinity
      size = Math.min(size, left)
      const slice = rest.subarray(0, size)
      rest = rest.subarray(size)
      link.bytes[direction] += size
      counters[direction === 'toServer' ? 'bytesToServer' : 'bytesToClient'] += size
      if (size === left) {
        // A reset could overtake the bytes that are to arrive.
        await new Promise<void>((resolve) => to.write(slice, () => resolve()))
        to.end()
        // Where both ends are in this process it takes turns of the event loop, not time.
        for (let turn = 0; turn < 4; turn += 1) await pause(5)
        end(link)
        return false
      }
      if (!to.write(slice)) await Promise.race([once(to, 'drain'), once(to, 'close')]).catch(() => undefined)
      if (mode.kind === 'trickle' && rest.length > 0) await waitForChange((size * 1_000) / mode.bytesPerSecond)
    }
    return !link.dead
  }

  function pipe(link: Link, direction: Direction): void {
    const from = direction === 'toServer' ? link.client : link.server
    const to = direction === 'toServer' ? link.server : link.client
    // null: the sender is done.
    const held: { readonly bytes: Buffer | null; readonly at: number }[] = []
    let heldBytes = 0
    let running = false

    async function run(): Promise<void> {
      if (running) return
      running = true
      for (let next = held[0]; next !== undefined && !link.dead; next = held[0]) {
        if (isHeld(direction)) {
          await waitForChange(Number.POSITIVE_INFINITY)
          continue
        }
        const early = mode.kind === 'delay' ? next.at + mode.ms - performance.now() : 0
        if (early > 0) {
          await waitForChange(early)
          continue
        }
        held.shift()
        if (next.bytes === null) to.end()
        else {
          heldBytes -= next.bytes.length
          if (!(await forward(link, direction, next.bytes))) return
          if (heldBytes < HELD_BYTES_MAX) from.resume()
        }
      }
      running = false
    }
    const hold = (bytes: Buffer | null) => {
      held.push({ bytes, at: performance.now() })
      heldBytes += bytes?.length ?? 0
      // Not read any more: the sender's own buffers fill, as they would on a real network.
      if (heldBytes >= HELD_BYTES_MAX && mode.kind !== 'delay') from.pause()
      void run()
    }
    from.on('data', (bytes: Buffer) => {
      if (!link.dead) hold(bytes)
    })
    from.on('end', () => {
      if (!link.dead) hold(null)
    })
  }

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    counters.connections += 1
    client.on('error', () => undefined)
    if (mode.kind === 'refuse') {
      counters.cut += 1
      client.resetAndDestroy()
      return
    }
    const server = dial({ host: target.host ?? '127.0.0.1', port: serverPort, allowHalfOpen: true, noDelay: true })
    const link: Link = { client, server, turn: null, fate: 'pass', bytes: { toServer: 0, toClient: 0 }, dead: false }
    links.add(link)
    server.on('error', () => undefined)
    for (const [gone, other] of [
      [client, server],
      [server, client],
    ] as const) {
      gone.on('close', async (hadError) => {
        while (!link.dead && isHeld(gone === client ? 'toServer' : 'toClient')) {
          await waitForChange(Number.POSITIVE_INFINITY)
        }
        if (link.dead || (!hadError && !other.destroyed)) return
        link.dead = true
        links.delete(link)
        if (hadError) other.resetAndDestroy()
      })
    }
    pipe(link, 'toServer')
    pipe(link, 'toClient')
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  const reset = () => {
    for (const link of [...links]) end(link)
  }
  return {
    port: (listener.address() as { port: number }).port,
    counters,
    mode(next) {
      mode = next
      if (next.kind === 'cutReply') repliesToCut = next.times
      if (next.kind === 'http') random = rng(next.seed)
      for (const link of links) {
        link.bytes = { toServer: 0, toClient: 0 }
        link.fate = 'pass'
      }
      if (next.kind === 'refuse') reset()
      endWaits()
    },
    reset,
    lead(port) {
      serverPort = port
    },
    async close() {
      listener.close()
      reset()
      endWaits()
      await once(listener, 'close')
    },
  }
}
