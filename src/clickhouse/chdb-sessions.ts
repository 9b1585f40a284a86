// Sessions of the embedded engine. Settings and parameters live in a session, so a session serves one request at a time
// and, once prepared, only requests with the very same settings: nothing can leak from one query into another.

import type { Session } from 'chdb'
import { assignment } from './chdb-guard.ts'

export interface Lease {
  readonly session: Session
  /** Marks the session's running query in `system.processes`. */
  readonly mark: string
  /** Parameters this session was ever given: they cannot be unset, only replaced. */
  readonly paramNames: Set<string>
  readonly key: string
}

export interface SessionPool {
  /** Opens or reuses a session with exactly these settings; `readonly: '1'` cannot be undone within it. */
  take(database: string, settings: ReadonlyMap<string, string>): Promise<Lease>
  /** `healthy: false` closes it. */
  give(lease: Lease, healthy: boolean): void
  close(): void
}

const IDLE_MAX = 16
const QUERY_BYTES_MAX = 4 * 1024 * 1024

export function openSessionPool(open: () => Session): SessionPool {
  const idle: Lease[] = []
  let opened = 0

  return {
    async take(database, settings) {
      const readonly = settings.get('readonly') === '1'
      const sets = [...settings].filter(([name]) => name !== 'readonly').sort(([a], [b]) => (a < b ? -1 : 1))
      const key = JSON.stringify([database, readonly, sets])
      const at = idle.findLastIndex((lease) => lease.key === key)
      const kept = at >= 0 ? idle.splice(at, 1)[0] : undefined
      if (kept) return kept

      const lease: Lease = { session: open(), mark: `session-${++opened}`, paramNames: new Set(), key }
      const assignments = [['max_query_size', String(QUERY_BYTES_MAX)], ['log_comment', lease.mark], ...sets]
      try {
        const use = database === '' ? '' : `USE ${quoteName(database)}; `
        const set = assignments.map(([name = '', value = '']) => assignment(name, value)).join(', ')
        await lease.session.queryAsync(`${use}SET ${set}${readonly ? '; SET readonly = 1' : ''}`)
      } catch (error) {
        lease.session.close()
        throw error
      }
      return lease
    },

    give(lease, healthy) {
      if (!healthy) return lease.session.close()
      idle.push(lease)
      if (idle.length > IDLE_MAX) idle.shift()?.session.close()
    },

    close() {
      for (const lease of idle.splice(0)) lease.session.close()
    },
  }
}

function quoteName(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name)) throw new Error('a database name is an identifier')
  return `\`${name}\``
}
