// The ClickHouse port while its engine is still starting: the log bridges the time, so nobody else need wait for it.

import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { within } from '../lib/within.ts'
import type { ClickHouse } from './clickhouse.ts'

const WAIT_MS_MAX = 3_000

export interface DeferredClickHouse {
  readonly port: ClickHouse
  /** Begins opening; resolves or fails with it. Closing waits for what has begun and nothing else. */
  start(): Promise<void>
}

/** Calls wait a moment for the port to be opened and fail with Unavailable when it is not by then, or cannot be. */
export function deferClickHouse(
  open: () => Promise<ClickHouse>,
  { clock, tokenFirst }: { readonly clock: Clock; readonly tokenFirst: boolean },
): DeferredClickHouse {
  let opening: Promise<ClickHouse> | null = null
  let port: ClickHouse | null = null

  async function opened(): Promise<ClickHouse> {
    if (port !== null) return port
    const first = await within(clock, WAIT_MS_MAX, Promise.resolve(opening)).catch((error: unknown) => {
      throw new Unavailable('clickhouse could not be opened', { cause: error })
    })
    if (first === null) throw new Unavailable('clickhouse is starting')
    return first
  }

  return {
    async start() {
      opening = open()
      port = await opening
    },
    port: {
      insert: async (...args) => (await opened()).insert(...args),
      query: async (...args) => (await opened()).query(...args),
      command: async (...args) => (await opened()).command(...args),
      patch: async (...args) => (await opened()).patch(...args),
      tokenFirst,
      ping: async () => (port === null ? false : port.ping()),
      async close() {
        await (await opening?.catch(() => null))?.close()
      },
    },
  }
}
