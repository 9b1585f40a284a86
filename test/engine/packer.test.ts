// Records of decided items: below the log's limit, without gaps, each item with its own row.

import t from 'tap'
import { createPacker } from '../../src/engine/packer.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { decodeEventsRecord, rowAt } from '../../src/events/record.ts'
import { fromRow } from '../../src/events/row.ts'
import { RECORD_BYTES_MAX } from '../../src/log/log.ts'
import { rng } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

function itemOf(seq: number, rowBytes: number, stateBytes: number): DecidedItem {
  return {
    seq,
    rowBytes,
    requestId: `req_${seq}`,
    workspace: 'ws_1',
    env: 'live',
    visitorId: 'pv_1',
    state: new Uint8Array(stateBytes).fill(seq),
    indexed: [],
    matches: [],
    nonceHash: 0,
    bodyHash: 0,
    acceptedAt: 1,
    keyKind: 'public',
    replyTo: '',
  }
}

t.test('items of a batch that takes several records keep their rows', async (t) => {
  const r = rng(3)
  const events = Array.from({ length: 60 }, (_, i) => randomEvent(r, 'ws_1', i))
  const pack = createPacker(1, events.length + 2)
  events.forEach((event, i) => {
    if (i === 30) pack.addCommand(31, { expiry: { workspace: 'ws_1', env: 'live', before: 1, visitors: [] } as never })
    const seq = i < 30 ? i + 1 : i + 2
    pack.add(itemOf(seq, pack.addRow(event, 2, seq), 60_000 + i))
  })
  const { records, placed } = pack.finish()
  t.ok(records.length > 4, 'they did not fit into one')
  t.ok(records.every((bytes) => bytes.length <= RECORD_BYTES_MAX))
  const decoded = records.map(decodeEventsRecord)
  t.same(
    decoded.map(({ from }) => from),
    [1, ...decoded.slice(0, -1).map(({ to }) => to + 1)],
    'ranges join without a gap',
  )
  t.equal(decoded.at(-1)?.to, events.length + 2)
  t.same(
    placed.flat(),
    decoded.flatMap(({ items }) => items.map(({ requestId }) => requestId)),
  )
  const told = decoded.flatMap((record) =>
    record.items.map((item, i) => [item.seq, fromRow(rowAt(record, i)).requestId]),
  )
  t.same(
    told,
    events.map(({ requestId }, i) => [i < 30 ? i + 1 : i + 2, requestId]),
  )
})

t.test('no record is longer than the log takes, whatever its items carry', async (t) => {
  const r = rng(5)
  const url = `https://hooks.example/${'\u4e2d'.repeat(900)}`
  const slack = (index: number) => ({ type: 'slack', ruleId: 'rul_1', index, url, message: 'x'.repeat(3_000) }) as const
  const more: readonly Partial<DecidedItem>[] = [
    { matches: Array.from({ length: 64 }, (_, n) => [`rul_${String(n).padStart(20, '0')}`, 0] as const) },
    { matches: Array.from({ length: 1_000 }, (_, n) => [`rul_${String(n).padStart(20, '0')}`, 1] as const) },
    { effects: Array.from({ length: 10 }, (_, n) => slack(n)) },
    { indexed: Array.from({ length: 8 }, (_, n) => `${n}:${'k'.repeat(20)}`), trace: 'a'.repeat(55) as never },
  ]
  for (const one of more) {
    const pack = createPacker(1, 256)
    for (let seq = 1; seq <= 256; seq++) {
      const event = randomEvent(r, 'ws_1', seq)
      pack.add({ ...itemOf(seq, pack.addRow(event, 2, seq), 2_000), ...one })
    }
    for (const { length } of pack.finish().records) t.ok(length <= RECORD_BYTES_MAX, `${length} bytes`)
  }
})

t.test('a row that no record has room for is refused, and the next one is written as ever', async (t) => {
  const r = rng(6)
  const pack = createPacker(1, 2)
  const event = randomEvent(r, 'ws_1', 1)
  const monitorMatches = Array.from({ length: 1_000 }, (_, n) => ({
    id: `rul_${n}`,
    name: '\u0001'.repeat(200),
    priority: n,
  }))
  t.throws(() => pack.addRow({ ...event, monitorMatches } as never, 2, 1), { name: 'RangeError' })
  pack.add(itemOf(1, pack.addRow(event, 2, 1), 10))
  const [record] = pack.finish().records.map(decodeEventsRecord)
  t.equal(record === undefined ? null : fromRow(rowAt(record, 0)).requestId, event.requestId)
})
