// Events as they are decided, for those who watch: the topic `events` is followed from its end, while somebody watches and no longer.

import type { Env, StoredEvent } from '../domain/event.ts'
import { decodeEventsRecord } from '../events/record.ts'
import { fromRow, type RowCell } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log, Seq } from '../log/log.ts'

export interface TailNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly partitions: number
  readonly clock: Pick<Clock, 'sleep'>
  readonly report: (error: unknown) => void
}

/** Must not throw. */
export type Hear = (event: StoredEvent) => void

export interface EventTail {
  /**
   * Once it has resolved every event of the environment that is decided is heard, in the order of its partition, until the function
   * it resolves with is called. Throws Unavailable.
   */
  watch(workspace: string, env: Env, hear: Hear): Promise<() => void>
}

const BATCH = { recordsMax: 64, bytesMax: 4_000_000 } as const
/** For records while none come. */
const IDLE_MS = 5_000
const RETRY_MS = 500
const utf8 = new TextDecoder()

export function openEventTail({ log, partitions, clock, report }: TailNeeds): EventTail {
  const watchers = new Map<string, Set<Hear>>()
  let following: { readonly begun: Promise<void>; readonly end: () => void } | null = null

  function tell(bytes: Uint8Array): void {
    const { items, rows } = decodeEventsRecord(bytes)
    let at = 0
    for (const { workspace, env, rowBytes } of items) {
      const row = rows.subarray(at, at + rowBytes)
      at += rowBytes
      const hearing = watchers.get(`${workspace}/${env}`)
      if (hearing === undefined) continue
      const event = fromRow(JSON.parse(utf8.decode(row)) as RowCell[])
      for (const hear of hearing) hear(event)
    }
  }

  async function follow(partition: number, from: Seq, signal: AbortSignal): Promise<void> {
    for (let position = from; !signal.aborted; ) {
      try {
        const records = await log.read('events', partition, position, { ...BATCH, waitMsMax: IDLE_MS }, signal)
        if (signal.aborted) return
        for (const { seq, bytes } of records) {
          // One record that cannot be read must not stand before all that follow.
          position = seq
          tell(bytes)
        }
      } catch (error) {
        if (!(error instanceof Unavailable)) report(error)
        await clock.sleep(RETRY_MS, signal)
      }
    }
  }

  function begin(): NonNullable<typeof following> {
    const ending = new AbortController()
    const all = Array.from({ length: partitions }, (_, partition) => partition)
    const begun = Promise.all(all.map((partition) => log.last('events', partition))).then((last) => {
      for (const partition of all) void follow(partition, last[partition] ?? 0, ending.signal)
    })
    return { begun, end: () => ending.abort() }
  }

  function leave(name: string, hear: Hear): void {
    const hearing = watchers.get(name)
    if (hearing?.delete(hear) !== true) return
    if (hearing.size === 0) watchers.delete(name)
    if (watchers.size > 0) return
    following?.end()
    following = null
  }

  return {
    async watch(workspace, env, hear) {
      const name = `${workspace}/${env}`
      watchers.set(name, (watchers.get(name) ?? new Set()).add(hear))
      following ??= begin()
      try {
        await following.begun
      } catch (error) {
        leave(name, hear)
        throw error
      }
      return () => leave(name, hear)
    },
  }
}
