// The row of an event: JSON as JSON.stringify writes it, of which the event can be read again.

import t from 'tap'
import type { Explanation, RuleMatch, StoredEvent } from '../../src/domain/event.ts'
import { COLUMNS, fromRow, type RowCell, toRow } from '../../src/events/row.ts'
import { writeRow } from '../../src/events/write-row.ts'
import {
  clearLines,
  linesBetween,
  linesEnd,
  putAscii,
  putNumber,
  putText,
  putTextWithin,
} from '../../src/lib/json-lines.ts'
import { sized } from '../helpers/depth.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'
import { HOSTILE, randomEvent } from '../helpers/stored-events.ts'

const EVENTS = sized({ quick: 300, usual: 2_000, long: 20_000 })
const HALVES = ['\ud800', 'a\udc00b', '\ud83d', '\u007f', '\u0080', '\u0001"\\']
const TEXTS = [...HOSTILE, ...HALVES, 'plain', '']

/** With all that judging can say of it besides. */
function judged(r: Rng, number: number): StoredEvent {
  const event = randomEvent(r, 'ws_1', number)
  const match = (id: string): RuleMatch => ({
    id,
    name: r.pick(TEXTS),
    priority: r.int(1_000),
    verdict: 'block',
    deciding: r.chance(0.5),
  })
  const few = <T>(make: () => T): T[] => Array.from({ length: r.int(3) }, make)
  const generation = r.pick([1, 2, 4_294_967_295])
  const explanation: Explanation = {
    candidates: few(() => ({
      visitorId: r.pick([event.visitorId, 'pv_x']),
      score: r.pick([event.confidence, 0.1234]),
    })),
    comparison: r.pick([null, '=?~!|=a']),
    evidence: few(() => r.pick(['possible_visitor', ...TEXTS])),
    // A row leaves out what follows from the method.
    presentedGeneration: event.identity.method === 'token' ? r.pick([generation, 3]) : r.pick([null, 3]),
  }
  const recorded = { totalVisits: 3, firstSeenAt: event.firstSeenAt, lastSeenAt: event.lastSeenAt }
  const bot = {
    state: r.pick(['undetermined', 'clear', 'detected'] as const),
    confidence: r.pick([0, 0.95, 0.0001, 1]),
    methods: few(() => r.pick(TEXTS)),
    source: r.pick(['client', 'server']),
    dataAgeSeconds: r.pick([null, 0, 86_400]),
  }
  return {
    ...event,
    ip: event.ip.lat === null ? { ...event.ip, lng: null } : event.ip,
    signals: { ...event.signals, bot },
    scoreReasons: few(() => ({ score: 'bot', reason: r.pick(TEXTS), weight: r.pick([0.5, 0.3333]) })),
    matchedRule: r.pick([null, { id: 'rul_1', name: r.pick(TEXTS), priority: 7 }]),
    matchedRules: few(() => match('rul_1')),
    monitorMatches: few(() => match('rul_2')),
    evaluationError: r.pick([null, ...TEXTS.filter((text) => text !== '')]),
    identity: {
      method: event.identity.method,
      anonymitySet: 1,
      candidates: 2,
      generation,
      ...(r.chance(0.3) ? { holder: 'pv_y' } : {}),
      ...(r.chance(0.3) ? { recorded } : {}),
      ...(r.chance(0.7) ? { explanation } : {}),
    },
  }
}

t.test(
  'a row is what JSON.stringify writes, down to the JSON within it, and tells of its event the same again',
  async (t) => {
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const r = rng(seed)
    const wrong: string[] = []
    for (let i = 0; i < EVENTS; i++) {
      const row = toRow(judged(r, i), r.int(64), r.pick([0, i, Number.MAX_SAFE_INTEGER]))
      const cells = JSON.parse(row) as RowCell[]
      const detail = String(cells[COLUMNS.indexOf('detail')])
      const [partition, seq] = [Number(cells.at(-2)), Number(cells.at(-1))]
      if (cells.length !== COLUMNS.length || JSON.stringify(cells) !== row) wrong.push(row)
      else if (JSON.stringify(JSON.parse(detail)) !== detail) wrong.push(detail)
      else if (toRow(fromRow(cells), partition, seq) !== row) wrong.push(`read again: ${row}`)
    }
    t.same(wrong.slice(0, 3), [])
  },
)

t.test('rows written one behind the other stay apart, however long they are', async (t) => {
  const r = rng(7)
  const events = Array.from({ length: 40 }, (_, i) => ({
    ...judged(r, i),
    url: `https://shop.example/${'\u0001é"'.repeat(r.int(20_000))}`,
  }))
  clearLines()
  const ends = events.map((event, i) => {
    writeRow(event, 3, i)
    return linesEnd()
  })
  ends.forEach((end, i) => {
    const row = Buffer.from(linesBetween(ends[i - 1] ?? 0, end)).toString()
    if (row !== `${toRow(events[i] as StoredEvent, 3, i)}\n`) t.fail(`row ${i} is another's`)
  })
  t.equal(linesEnd(), ends.at(-1), 'a row that is wanted as a text leaves no trace among them')
})

t.test('numbers and texts are written as JSON has them', async (t) => {
  const r = rng(11)
  const written = (write: () => void): string => {
    clearLines()
    write()
    return Buffer.from(linesBetween(0, linesEnd())).toString()
  }
  const edges = [
    0,
    -0,
    9,
    10,
    9_999_999,
    10_000_000,
    10_000_001,
    99_999_999_999_999,
    1e14,
    2 ** 53,
    1e21,
    -1,
    -7.5,
    1e-7,
  ]
  const drawn = Array.from({ length: 500 }, () => r.float() * 10 ** r.int(18))
  for (const x of [...edges, ...drawn, ...drawn.map(Math.floor), Number.NaN, Number.POSITIVE_INFINITY]) {
    const text = written(() => putNumber(x))
    if (text !== JSON.stringify(x)) t.fail(`${x} is written ${text}`)
  }
  for (const text of TEXTS) {
    t.equal(
      written(() => putText(text)),
      JSON.stringify(text),
    )
    const within = written(() => {
      putAscii('"')
      putTextWithin(text)
      putAscii('"')
    })
    t.equal(within, JSON.stringify(JSON.stringify(text)))
  }
})
