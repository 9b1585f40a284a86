// What a long command prints: a bar that replaces itself on a terminal, and few plain lines in a log.

import t from 'tap'
import { openProgress } from '../../src/ops/progress.ts'

function record(isTTY: boolean) {
  let now = 0
  const texts: string[] = []
  const progress = openProgress({ isTTY, write: (text) => texts.push(text) }, { monotonic: () => now })
  return {
    texts,
    progress,
    run(steps: number) {
      progress.begin('events', steps)
      for (let step = 0; step < steps; step++) {
        now += 1
        progress.advance()
      }
      progress.end(`${steps} rows`)
    },
  }
}

t.test('a log gets few lines, however long a step is', async (t) => {
  const { texts, run } = record(false)
  run(100_000)
  t.same(texts, [
    'events: 25000 of 100000\n',
    'events: 50000 of 100000\n',
    'events: 75000 of 100000\n',
    'events: 100000 rows\n',
  ])
})

t.test('a step of unknown length tells only its outcome', async (t) => {
  const { texts, progress } = record(false)
  progress.begin('partition 1', null)
  for (let step = 0; step < 1_000; step++) progress.advance(1_000)
  progress.end('done')
  t.same(texts, ['partition 1: done\n'])
})

t.test('a terminal gets one line that is drawn again now and then', async (t) => {
  const { texts, run } = record(true)
  run(10_000)
  t.ok(texts.length > 50 && texts.length < 150, `${texts.length} times`)
  t.match(texts[50], /events \[#{12}\.{12}\] (49|50)\d\d of 10000$/)
  t.equal(texts.filter((text) => text.includes('\n')).length, 1)
  t.match(texts.at(-1), /events: 10000 rows\n$/)
})
