// Work of a command on ports that is told to stop: it ends at its next step, and whoever opened the ports can close them and clear away.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Kv } from '../kv/kv.ts'
import type { Log } from '../log/log.ts'

export interface StoppedPorts {
  readonly log: Log
  readonly kv: Kv
  readonly clickhouse: ClickHouse
}

/** The same, where steps that all long work takes fail with the signal's reason once it has aborted. What clears away can still work. */
export function untilStopped<Needs extends StoppedPorts>(needs: Needs, stopping: AbortSignal): Needs {
  const { log, kv, clickhouse } = needs
  return {
    ...needs,
    log: {
      ...log,
      async last(topic, partition) {
        stopping.throwIfAborted()
        return log.last(topic, partition)
      },
      async read(topic, partition, after, limits) {
        stopping.throwIfAborted()
        return log.read(topic, partition, after, limits)
      },
    },
    kv: {
      ...kv,
      async commit(commits) {
        stopping.throwIfAborted()
        return kv.commit(commits)
      },
    },
    clickhouse: {
      ...clickhouse,
      async insert(table, columns, lines, opts) {
        stopping.throwIfAborted()
        return clickhouse.insert(table, columns, lines, opts)
      },
      async query(sql, params, opts) {
        stopping.throwIfAborted()
        return clickhouse.query(sql, params, opts)
      },
    },
  }
}

/** What `work` comes to; fails with the signal's reason as soon as it aborts, while the work, which is another process's, goes on. */
export async function unlessStopped<T>(work: Promise<T>, stopping: AbortSignal): Promise<T> {
  const over = new AbortController()
  const stopped = new Promise<never>((_, reject) => {
    const stop = () => reject(stopping.reason)
    if (stopping.aborted) stop()
    else stopping.addEventListener('abort', stop, { signal: over.signal })
  })
  try {
    return await Promise.race([work, stopped])
  } finally {
    over.abort()
  }
}
