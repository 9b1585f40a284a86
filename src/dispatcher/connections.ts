// The connections to receivers: of each origin those that are free, the one that was used last first. A shared agent would look
// through all busy ones for every request, and give a connection back a turn too late to be used again at once.

import type { Client } from 'undici'
import type { Clock } from '../lib/clock.ts'

export interface Connection {
  readonly origin: string
  readonly client: Client
  /** Monotonic milliseconds; infinite: nothing was ever connected. */
  connectedAt: number
  freeSince: number
  isOpen: boolean
  isOpening: boolean
}

export interface Connections {
  /** Whether another request to `origin` would find a connection, or may open one. */
  hasRoom(origin: string): boolean
  /** A free one, unless it must be new, or a new one that connects with its first request. */
  take(origin: string, mustBeNew: boolean): Connection
  /** Once for each that was taken, when its request is over. */
  give(connection: Connection): void
  close(): Promise<void>
}

/** So that a change of the receiver's addresses is noticed on busy connections too. */
const AGE_MS_MAX = 300_000
/** What has not been used for this long has been closed by one side or the other. */
const FREE_MS_MAX = 60_000
const PRUNED_EVERY_MS = 10_000
/** What one webhook may use twice. A thousand handshakes at once took so long that all of them were too late. */
const OPENING_MAX = 64

/** `open` makes a client that calls back whenever it has a new connection. */
export function openConnections(
  clock: Pick<Clock, 'monotonic'>,
  open: (origin: string, onConnected: () => void) => Client,
): Connections {
  const free = new Map<string, Connection[]>()
  const all = new Set<Connection>()
  /** How many of each origin are being opened. */
  const opening = new Map<string, number>()
  let prunedAt = clock.monotonic()

  function opened(connection: Connection): void {
    if (!connection.isOpening) return
    connection.isOpening = false
    const left = (opening.get(connection.origin) ?? 0) - 1
    if (left > 0) opening.set(connection.origin, left)
    else opening.delete(connection.origin)
  }

  function make(origin: string): Connection {
    const client = open(origin, () => {
      connection.connectedAt = clock.monotonic()
      connection.isOpen = true
      opened(connection)
    })
    const connection: Connection = {
      origin,
      client,
      connectedAt: Number.POSITIVE_INFINITY,
      freeSince: 0,
      isOpen: false,
      isOpening: true,
    }
    client.on('disconnect', () => {
      connection.isOpen = false
    })
    all.add(connection)
    opening.set(origin, (opening.get(origin) ?? 0) + 1)
    return connection
  }

  function end(connection: Connection): void {
    all.delete(connection)
    connection.client.close().catch(() => {})
  }

  function lastFree(origin: string): Connection | undefined {
    const list = free.get(origin)
    for (let last = list?.at(-1); last !== undefined; last = list?.at(-1)) {
      if (last.isOpen && clock.monotonic() - last.connectedAt < AGE_MS_MAX) return last
      list?.pop()
      end(last)
    }
    return undefined
  }

  /** Those that were used last are at the end of each list. */
  function prune(now: number): void {
    prunedAt = now
    for (const [origin, list] of free) {
      const fresh = list.findIndex(({ freeSince }) => now - freeSince < FREE_MS_MAX)
      for (const connection of list.splice(0, fresh === -1 ? list.length : fresh)) end(connection)
      if (list.length === 0) free.delete(origin)
    }
  }

  return {
    hasRoom: (origin) => lastFree(origin) !== undefined || (opening.get(origin) ?? 0) < OPENING_MAX,
    take(origin, mustBeNew) {
      const last = mustBeNew ? undefined : lastFree(origin)
      if (last === undefined) return make(origin)
      free.get(origin)?.pop()
      return last
    },
    give(connection) {
      opened(connection)
      if (!all.has(connection)) return
      if (!connection.isOpen) {
        end(connection)
        return
      }
      const now = clock.monotonic()
      connection.freeSince = now
      const list = free.get(connection.origin)
      if (list === undefined) free.set(connection.origin, [connection])
      else list.push(connection)
      if (now - prunedAt > PRUNED_EVERY_MS) prune(now)
    },
    async close() {
      const some = [...all]
      all.clear()
      free.clear()
      await Promise.all(some.map(({ client }) => client.destroy()))
    },
  }
}
