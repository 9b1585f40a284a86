// The jobs role of a process: leased work that nobody waits for, each kind done by one process at a time.

import type { Bus } from '../bus/bus.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Log } from '../log/log.ts'
import { type ListJobNeeds, runListJob } from './lists.ts'
import { runTrim } from './trim.ts'

export interface JobsRoleNeeds extends Omit<ListJobNeeds, 'onError'> {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly logger: Logger
  readonly partitions: number
  /** How long records stay in the log at least, milliseconds. */
  readonly keepMs: number
  /** Takes on the names that are this process's share. */
  readonly own: (names: readonly string[], hold: (name: string, signal: AbortSignal) => Promise<void>) => void
}

const TRIM_EVERY_MS = 5_000

export function startJobs(needs: JobsRoleNeeds): void {
  const { logger } = needs
  const onError = (what: string) => (error: unknown) => logger.error({ error }, what)
  const trimming = { ...needs, everyMs: TRIM_EVERY_MS, onError: onError('trimming the log failed') }
  const listing = { ...needs, onError: onError('expiring entries of lists failed') }
  needs.own(['trim', 'lists'], (name, signal) =>
    name === 'trim' ? runTrim(trimming, signal) : runListJob(listing, signal),
  )
}
