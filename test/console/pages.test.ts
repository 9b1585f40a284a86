// What pages of the console compute without a browser: orders, differences, lines of files, signatures, figures, timelines.

import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { csvOf } from '../../src/console/lib/csv.ts'
import { parseServerEvent } from '../../src/console/lib/event-text.ts'
import { cellsOf, lineOfField, readLines } from '../../src/console/pages/lists/bulk.ts'
import { diffLines } from '../../src/console/pages/rules/diff.ts'
import { movesFor, type Placed } from '../../src/console/pages/rules/order.ts'
import { figuresOf, quantileOf, readScrape } from '../../src/console/pages/system/metrics.ts'
import { check, signatureOf } from '../../src/console/pages/webhooks/verify.ts'

t.test(
  'moving a rule puts it where it was dropped, whatever the priorities, with the order intact at every write',
  (t) => {
    const asked = fc
      .array(fc.integer({ min: -5, max: 30 }), { minLength: 2, maxLength: 8 })
      .map((numbers) => numbers.sort((a, b) => a - b).map((priority, i): Placed => ({ id: `r${i}`, priority })))
    const places = fc.tuple(asked, fc.nat(), fc.nat())
    fc.assert(
      fc.property(places, ([rules, a, b]) => {
        const [from, to] = [a % rules.length, b % rules.length]
        const wanted = rules.map(({ id }) => id)
        wanted.splice(to, 0, ...wanted.splice(from, 1))
        const now = new Map(rules.map((rule) => [rule.id, rule.priority]))
        const moved = rules[from]?.id
        const others = () =>
          rules.map(({ id }, i) => ({ id, i })).sort((x, y) => (now.get(x.id) ?? 0) - (now.get(y.id) ?? 0) || x.i - y.i)
        const restOf = () =>
          others()
            .map(({ id }) => id)
            .filter((id) => id !== moved)
        const rest = restOf()
        for (const { id, priority } of movesFor(rules, from, to)) {
          now.set(id, priority)
          if (restOf().join() !== rest.join()) return false
        }
        return (
          from === to ||
          others()
            .map(({ id }) => id)
            .join() === wanted.join()
        )
      }),
      { numRuns: 2_000 },
    )
    t.pass()
    t.end()
  },
)

t.test('a difference has every line of both texts in order, and nothing else', (t) => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 }).map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after)
      const of = (other: string) =>
        lines
          .filter(({ side }) => side !== other)
          .map(({ text: line }) => line)
          .join('\n')
      return of('added') === before && of('removed') === after
    }),
  )
  t.same(
    diffLines('a\nb', 'a\nc').map(({ side }) => side),
    ['same', 'removed', 'added'],
  )
  t.end()
})

t.test('lines of a file are read with their numbers, and a wrong one says why', (t) => {
  const { lines, wrong } = readLines('value,ttl,reason\r\nx,60,"a ""b"", c"\n\ny\nx\nz,soon\nw,1,r,more\n"open\n,,\n')
  t.same(lines, [
    { line: 2, value: 'x', ttl: 60, reason: 'a "b", c' },
    { line: 4, value: 'y', ttl: null, reason: '' },
  ])
  t.same(
    wrong.map(({ line }) => line),
    [5, 6, 7, 8, 9],
  )
  t.match(wrong[0]?.why, /line 2/)
  t.equal(lineOfField('add[1].ttl', lines), 4)
  t.equal(lineOfField('add', lines), null)
  t.equal(lineOfField(null, lines), null)
  t.end()
})

t.test('a file that is written is read again as it was, and no cell of it is a formula', (t) => {
  const cell = fc.string({ maxLength: 12 }).filter((text) => !/[\r\n]/.test(text) && text === text.trim())
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 4 }), (row) => {
      const [, line = ''] = csvOf(
        row.map((_, i) => `c${i}`),
        [row],
      ).split('\r\n')
      const read = cellsOf(line) ?? []
      return read.every((text, i) => text === row[i] || text === `'${row[i]}`) && !/^[=+@-]/.test(read[0] ?? '')
    }),
  )
  t.match(csvOf(['a'], [['=1+1']]), "'=1+1")
  t.equal(csvOf(['a'], [[-1]]), 'a\r\n-1\r\n', 'a number is no formula')
  t.end()
})

t.test('the box of signatures agrees with the server, and names what is wrong', async (t) => {
  const [secret, timestamp, body] = ['whsec_dGVzdA==', '1700000000', '{"a":1}']
  const at = 1_700_000_000_000
  // The vector of the guide on webhooks.
  const signature = 'sha256=5f546eef70c9127caf7facd578ef04d95f9e33625fb033341afc26bcfa798657'
  t.equal(await signatureOf({ secret, timestamp, body }), signature)
  t.equal(signature, `sha256=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`)
  const says = async (changes: object, now = at) =>
    (await check({ secret, timestamp, body, signature, ...changes }, now))
      .filter(({ isRight }) => !isRight)
      .map(({ says: text }) => text)
  t.same(await says({}), [])
  t.match(await says({}, at + 400_000), [/400 s from now/])
  t.match(await says({ timestamp: 'now' }), [/no number/, /another secret/])
  t.match(await says({ secret: ` ${secret}` }), [/white space/, /another/])
  t.match(await says({ secret: 'whsec_other' }), [/another secret/])
  t.match(await says({ body: ' {"a":1}\n' }), [/White space around the body/])
  t.match(await says({ body: '{ "a": 1 }' }), [/parsed and written again/])
  t.match(await says({ signature: 'abc' }), [/does not begin/, /another/])
})

t.test('events of a stream are read, comments are not', (t) => {
  t.same(parseServerEvent('id: 1\nevent: event\ndata: {"a":\ndata: 1}'), { event: 'event', data: '{"a":\n1}' })
  t.same(parseServerEvent('data:x'), { event: 'message', data: 'x' })
  t.equal(parseServerEvent(':'), null)
  t.end()
})

const SCRAPE = (decided: number, fast: number, all: number) => `# HELP x y
fingerpost_identifications_decided_total{verdict="allow",shard="0"} ${decided}
fingerpost_identifications_decided_total{verdict="block",shard="1"} 1
fingerpost_decision_stage_duration_seconds_bucket{stage="decide",le="0.005"} ${fast}
fingerpost_decision_stage_duration_seconds_bucket{stage="decide",le="+Inf"} ${all}
fingerpost_decision_stage_duration_seconds_count{stage="decide"} ${all}
fingerpost_thread_utilization_ratio{shard="main"} 0.25
fingerpost_rules_revision{workspace="a \\"b\\""} 7
process_start_time_seconds 1.7e9
`

t.test('rates and quantiles are of the time between two readings', (t) => {
  const before = readScrape(SCRAPE(10, 5, 5), 1_000)
  const now = readScrape(SCRAPE(30, 5, 15), 3_000)
  const figures = figuresOf(now, before)
  t.equal(figures.decidedPerSecond, 10)
  t.equal(figuresOf(now, null).decidedPerSecond, null)
  t.equal(figures.rulesRevision, 7)
  t.equal(figures.startedAt, '2023-11-14T22:13:20.000Z')
  t.match(figures.threads, [{ shard: 'main', utilization: 0.25 }])
  const p50 = (earlier: typeof before | null) =>
    quantileOf(now, earlier, 'decision_stage_duration_seconds', 0.5, ['stage', 'decide'])
  t.equal(p50(before), Number.POSITIVE_INFINITY, 'since then all were slow')
  t.equal(quantileOf(before, null, 'decision_stage_duration_seconds', 0.5, ['stage', 'decide']), 0.005)
  t.equal(
    quantileOf(now, now, 'decision_stage_duration_seconds', 0.3, ['stage', 'decide']),
    0.005,
    'ever, where nothing happened',
  )
  t.equal(quantileOf(now, null, 'nothing', 0.5, null), null)
  t.end()
})
