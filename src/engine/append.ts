// The engine's writes to the log: fenced decisions, whose unknown outcomes are resolved by reading the tail, and dead letters.

import { Packr } from 'msgpackr'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import type { AppendOptions, Log, Seq } from '../log/log.ts'
import type { Dead } from './decided.ts'

const RETRY_MS = 50
const RETRY_MS_MAX = 2_000
const TAIL = { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }
const DURABLE = { recordsMax: 1, bytesMax: 1, waitMsMax: 100 }
const packr = new Packr({ useRecords: false })

/** Repeats `action` while the port is unavailable; anything else goes through. */
export async function persist<T>(clock: Clock, action: () => Promise<T>): Promise<T> {
  for (let pauseMs = RETRY_MS; ; pauseMs = Math.min(RETRY_MS_MAX, pauseMs * 2)) {
    try {
      return await action()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await clock.sleep(pauseMs)
    }
  }
}

/** R2: appends one record of decisions, or throws Conflict when somebody else has appended or what was decided was taken back. */
export function appendFenced(
  log: Log,
  clock: Clock,
  partition: number,
  record: Uint8Array,
  opts: Required<Pick<AppendOptions, 'expectLast' | 'basis' | 'onPlaced'>>,
): Promise<Seq> {
  const { expectLast } = opts
  let unknown = false
  return persist(clock, async () => {
    if (unknown && (await log.last('events', partition)) !== expectLast) {
      const [next] = await log.read('events', partition, expectLast, TAIL)
      if (next !== undefined && Buffer.compare(next.bytes, record) === 0) return next.seq
      throw new Conflict(`events/${partition} has another successor of ${expectLast}`)
    }
    unknown = true
    return await log.append('events', partition, [record], opts)
  })
}

/** Waits until identifications up to `seq`, which were read at `basis`, are durable; throws Conflict when they were taken back. */
export async function awaitDurable(
  log: Log,
  clock: Clock,
  partition: number,
  { seq, basis }: { readonly seq: Seq; readonly basis: number },
): Promise<void> {
  for (;;) {
    const last = await persist(clock, () => log.last('identifications', partition))
    // Asked last: others may have been given the same places since.
    if (log.basis() !== basis) throw new Conflict('what was decided was taken back')
    if (last >= seq) return
    await persist(clock, () => log.read('identifications', partition, seq - 1, DURABLE))
  }
}

/** Puts what could not be decided aside, with its bytes as they are stored; at least once. */
export async function appendDead(log: Log, clock: Clock, partition: number, dead: readonly Dead[]): Promise<void> {
  for (const { seq, reason } of dead) {
    const record = await persist(clock, () => log.at('identifications', partition, seq))
    const { bytes } = must(record, 'the record of a dead letter')
    const letter = packr.pack({ topic: 'identifications', partition, seq, reason, at: clock.now(), bytes })
    await persist(clock, () => log.append('dead', 0, [letter]))
  }
}
