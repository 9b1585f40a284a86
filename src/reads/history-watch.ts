// Whether ClickHouse answers, asked every few seconds: nothing that is accepted waits for it, but operators do.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'

export interface HistoryWatch {
  /** null: not known yet. */
  answers(): boolean | null
  stop(): void
}

const EVERY_MS = 10_000

/** `told`: each time it was asked. */
export function watchHistory(
  clickhouse: Pick<ClickHouse, 'ping'>,
  clock: Clock,
  told: (answers: boolean) => void,
): HistoryWatch {
  const stopped = new AbortController()
  let answers: boolean | null = null

  async function watch(): Promise<void> {
    while (!stopped.signal.aborted) {
      answers = await clickhouse.ping().catch(() => false)
      told(answers)
      await nextBeat(clock, EVERY_MS, stopped.signal)
    }
  }
  void watch()
  return { answers: () => answers, stop: () => stopped.abort() }
}
