// A request with rows that the sink has given up may still be under way: what it was given stays as it was, whatever is inserted next.

import t from 'tap'
import { encodeEventsRecord } from '../../src/events/record.ts'
import type { Commit, KvKey } from '../../src/kv/kv.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { LogRecord, Seq } from '../../src/log/log.ts'
import { openSink } from '../../src/sink/sink.ts'

const textOf = (seq: Seq): string => `["row ${seq}"]\n`
const recordOf = (seq: Seq): LogRecord => ({
  seq,
  bytes: encodeEventsRecord({ from: seq, to: seq, items: [], rows: Buffer.from(textOf(seq)) }),
})

/** A kv of one partition that keeps its position and what is put. */
function openKv() {
  const values = new Map<string, { readonly value: unknown; readonly version: number }>()
  let position = 0
  let version = 0
  return {
    position: async () => position,
    get: async (_scope: string, keys: readonly KvKey[]) => keys.map((key) => values.get(String(key))),
    async commit(commits: readonly Commit[]) {
      for (const { guard, put = [], drop = [] } of commits) {
        for (const { key, value } of put) values.set(String(key), { value, version: ++version })
        for (const key of drop) values.delete(String(key))
        position = guard?.next ?? position
      }
      return commits.map(() => true)
    },
  }
}

t.test('rows of a request that was given up are not written over', async (t) => {
  const records = [recordOf(1)]
  const kv = openKv()
  const given: Uint8Array[] = []
  const ending = new AbortController()
  const sink = openSink({
    log: {
      read: async (_topic: string, _partition: number, after: Seq) => records.filter(({ seq }) => seq > after),
      last: async () => 0,
    },
    kv,
    clickhouse: {
      tokenFirst: false,
      async insert(_table: string, _columns: readonly string[], rows: Uint8Array) {
        given.push(rows)
        if (given.length > 1) return
        // It goes on beside what comes next.
        records.push(recordOf(2))
        throw new Unavailable('no answer')
      },
    },
    clock,
    deployment: 'd',
    flushMsMax: 10,
    batchRowsMax: 1,
    report: {
      sunk: (_partition: number, seq: Seq) => seq === 2 && ending.abort(),
      quarantined() {},
      failed() {},
      inserted() {},
    },
  } as never)
  await sink(0, ending.signal)
  t.same(given.map(String), [textOf(1), textOf(1), textOf(2)])
})
