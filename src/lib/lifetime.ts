// The life of a process's parts: what was opened is closed in reverse, what runs in the background is watched.

import { setMaxListeners } from 'node:events'
import type { Clock } from './clock.ts'
import type { Logger } from './logger.ts'
import { within } from './within.ts'

export interface Lifetime {
  /** Aborts when the process is to stop; background work ends by it. */
  readonly stopping: AbortSignal
  /** Aborts then, or before: when nobody wants what is being opened any more. */
  readonly waiting: AbortSignal
  /** Called in reverse order of registration by `close`. */
  onClose(close: () => Promise<void> | void): void
  /** Work that ends only with `stopping`: one that fails makes `failed` tell its name, and is waited for by `settle`. */
  run(name: string, work: Promise<unknown>): void
  failed(): readonly string[]
  /** Aborts `stopping` and waits for everything that runs. */
  settle(): Promise<void>
  close(): Promise<void>
  /** Both. */
  end(): Promise<void>
}

export function createLifetime(log: Logger, unwanted?: AbortSignal): Lifetime {
  const stopping = new AbortController()
  // Everything that runs in the background listens.
  setMaxListeners(0, stopping.signal)
  const waiting = AbortSignal.any([stopping.signal, ...(unwanted === undefined ? [] : [unwanted])])
  const closers: (() => Promise<void> | void)[] = []
  const running: Promise<void>[] = []
  const failed: string[] = []
  const lifetime: Lifetime = {
    stopping: stopping.signal,
    waiting,
    onClose: (close) => void closers.push(close),
    run(name, work) {
      running.push(
        work.then(
          () => undefined,
          (error) => {
            failed.push(name)
            log.error({ error }, `${name} stopped`)
          },
        ),
      )
    },
    failed: () => failed,
    async settle() {
      stopping.abort()
      await Promise.all(running)
    },
    async close() {
      for (const close of closers.splice(0).reverse()) {
        try {
          await close()
        } catch (error) {
          log.error({ error }, 'closing failed')
        }
      }
    },
    async end() {
      await lifetime.settle()
      await lifetime.close()
    },
  }
  return lifetime
}

/** Settles what runs; when that takes longer than `msMax`, `hurry` is to bring it to its end. */
export async function settleWithin(
  msMax: number,
  {
    lifetime,
    clock,
    hurry,
  }: { readonly lifetime: Lifetime; readonly clock: Clock; readonly hurry: () => Promise<void> },
): Promise<void> {
  const settled = lifetime.settle()
  if ((await within(clock, msMax, settled)) === null) await hurry()
  await settled
}
