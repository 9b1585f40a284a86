// The control plane of a process: the way in for commands, and the owner of `changes` while this process holds it.

import type { Bus } from '../bus/bus.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { Log } from '../log/log.ts'
import { runControl } from './owner.ts'
import { openSubmit, type Submitter } from './submit.ts'

export interface ControlRoleNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly lifetime: Lifetime
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'effectsSkipped'>
  /** Runs the owner while this process is to be it, until the process stops. */
  readonly own: (run: (signal: AbortSignal) => Promise<void>) => void
}

export function startControl(needs: ControlRoleNeeds): Submitter {
  const { log, kv, bus, clock, random, lifetime, logger } = needs
  const report: Parameters<typeof runControl>[0]['report'] = (fact) => {
    if (fact.kind === 'dead') logger.warn(fact, 'a command could not be applied')
    if (fact.kind === 'applied' && fact.type === 'list.effects') needs.metrics.effectsSkipped.inc(fact.skipped)
    if (fact.kind === 'stalled') logger.warn({ error: fact.error }, 'the control plane waits for a port')
  }
  needs.own((signal) => runControl({ log, kv, bus, clock, signal, report }))
  const submitter = openSubmit({ log, kv, bus, clock, random })
  lifetime.onClose(() => submitter.close())
  return submitter
}
