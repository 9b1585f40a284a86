// Watching events: the log is read while somebody watches and no longer, from its end, and one record that cannot be read stands
// before no other.

import t from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { encodeEventsRecord } from '../../src/events/record.ts'
import { toRow } from '../../src/events/row.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { LogRecord } from '../../src/log/log.ts'
import { openEventTail } from '../../src/reads/tail.ts'
import { eventually } from '../helpers/client.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const PARTITIONS = 3
const random = rng(testSeed())

function recordOf(seq: number, events: readonly StoredEvent[]): LogRecord {
  const rows = events.map((event) => `${toRow(event, 0, seq)}\n`)
  const items = events.map(
    (event, i): DecidedItem => ({
      ...{ seq, requestId: event.requestId, workspace: event.workspace, env: event.env, visitorId: event.visitorId },
      ...{ state: new Uint8Array(0), indexed: [], matches: [], nonceHash: 0, bodyHash: 0, acceptedAt: 0 },
      ...{ keyKind: 'secret', replyTo: '', rowBytes: Buffer.byteLength(rows[i] ?? '') },
    }),
  )
  return { seq, bytes: encodeEventsRecord({ from: seq, to: seq, items, rows: Buffer.from(rows.join('')) }) }
}

/** A log that counts how often it is read. */
function openLog() {
  const topics = Array.from({ length: PARTITIONS }, (): LogRecord[] => [])
  const asked = { reads: 0, waiting: 0, isDown: false }
  return {
    asked,
    add: (partition: number, record: LogRecord) => topics[partition]?.push(record),
    log: {
      async last(_: string, partition: number) {
        if (asked.isDown) throw new Unavailable('down')
        return topics[partition]?.at(-1)?.seq ?? 0
      },
      async read(_: string, partition: number, after: number, __: object, signal?: AbortSignal) {
        asked.reads += 1
        asked.waiting += 1
        await systemClock.sleep(5, signal)
        asked.waiting -= 1
        return (topics[partition] ?? []).filter(({ seq }) => seq > after)
      },
    },
  }
}

const eventOf = (number: number, workspace = 'ws_a') => randomEvent(random, workspace, number)

t.test('nothing is read before somebody watches, nor after the last one has left', async (t) => {
  const { log, asked, add } = openLog()
  const tail = openEventTail({
    log,
    partitions: PARTITIONS,
    clock: systemClock,
    report: (error) => t.fail(String(error)),
  })
  add(0, recordOf(1, [eventOf(1)]))
  await systemClock.sleep(30)
  t.equal(asked.reads, 0)
  const heard: string[][] = [[], [], []]
  const watch = (i: number, workspace: string) =>
    tail.watch(workspace, 'live', ({ requestId }) => heard[i]?.push(requestId))
  const stops = [await watch(0, 'ws_a'), await watch(1, 'ws_a'), await watch(2, 'ws_b')]
  const [first, second, other] = [eventOf(2), eventOf(3), eventOf(4, 'ws_b')]
  add(0, recordOf(2, [first, other, second]))
  await eventually(
    async () => heard,
    (all) => all[2]?.length === 1,
  )
  const own = [first.requestId, second.requestId]
  t.same(heard, [own, own, [other.requestId]], 'from the end on, each its own')
  stops[0]?.()
  stops[0]?.()
  add(2, recordOf(1, [eventOf(5)]))
  await eventually(
    async () => heard,
    (all) => all[1]?.length === 3,
  )
  t.equal(heard[0]?.length, 2, 'who has left hears nothing')
  stops[1]?.()
  stops[2]?.()
  await eventually(
    async () => asked.waiting,
    (waiting) => waiting === 0,
  )
  const { reads } = asked
  add(0, recordOf(3, [eventOf(6)]))
  await systemClock.sleep(30)
  t.equal(asked.reads, reads)
  const stop = await watch(0, 'ws_a')
  add(0, recordOf(4, [eventOf(7)]))
  await eventually(
    async () => heard,
    (all) => all[0]?.length === 3,
  )
  t.equal(heard[0]?.length, 3, 'what was decided meanwhile is not told')
  stop()
})

t.test('a record that cannot be read is reported and passed', async (t) => {
  const { log, add } = openLog()
  const reported: unknown[] = []
  const tail = openEventTail({
    ...{ log, partitions: PARTITIONS },
    clock: { sleep: (_, signal) => systemClock.sleep(1, signal) },
    report: (error) => reported.push(error),
  })
  const heard: string[] = []
  const stop = await tail.watch('ws_a', 'live', ({ requestId }) => heard.push(requestId))
  const event = eventOf(1)
  add(1, { seq: 1, bytes: new Uint8Array(8) })
  add(1, recordOf(2, [event]))
  await eventually(
    async () => heard,
    (all) => all.length > 0,
  )
  t.same(heard, [event.requestId])
  t.equal(reported.length, 1)
  stop()
})

t.test('who cannot begin to watch is told, and the next one begins anew', async (t) => {
  const { log, asked, add } = openLog()
  const tail = openEventTail({ log, partitions: PARTITIONS, clock: systemClock, report: () => {} })
  asked.isDown = true
  await t.rejects(
    tail.watch('ws_a', 'live', () => {}),
    Unavailable,
  )
  t.equal(asked.reads, 0)
  asked.isDown = false
  const heard: string[] = []
  const stop = await tail.watch('ws_a', 'live', ({ requestId }) => heard.push(requestId))
  add(0, recordOf(1, [eventOf(1)]))
  await eventually(
    async () => heard,
    (all) => all.length > 0,
  )
  t.equal(heard.length, 1)
  stop()
})
