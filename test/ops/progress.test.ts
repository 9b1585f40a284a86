// What a long command prints: a bar that replaces itself on a terminal, and few plain lines in a log.

import t from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { openProgress, whileWaiting } from '../../src/ops/progress.ts'

function record(isTTY: boolean) {
  let now = 0
  const texts: string[] = []
  const progress = openProgress({ isTTY, write: (text) => texts.push(text) }, { monotonic: () => now })
  return {
    texts,
    progress,
    pass(ms: number) {
      now += ms
    },
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

t.test('a log hears of a long step of unknown length after two seconds, then ever more seldom', async (t) => {
  const { texts, progress, pass } = record(false)
  progress.begin('geo', null)
  for (let second = 1; second <= 60; second++) {
    pass(1_000)
    progress.advance()
  }
  progress.end('done')
  t.same(texts, ['geo: 2\n', 'geo: 4\n', 'geo: 8\n', 'geo: 16\n', 'geo: 32\n', 'geo: done\n'])
})

t.test('the seconds of work that tells nothing are counted, and its end is told whatever it is', async (t) => {
  const { texts, progress, pass } = record(false)
  let finish = (_: string) => {}
  let seconds = 0
  const sleep = async (ms: number) => {
    pass(ms)
    seconds += 1
    if (seconds === 4) finish('made')
    await new Promise((resolve) => setImmediate(resolve))
  }
  const work = new Promise<string>((resolve) => {
    finish = resolve
  })
  t.equal(await whileWaiting(progress, { sleep }, 'backup', work), 'made')
  t.same(texts.slice(0, 1), ['backup, seconds: 2\n'])
  t.equal(texts.at(-1), 'backup, seconds: done\n')
  await t.rejects(whileWaiting(progress, { sleep }, 'backup', Promise.reject(new Error('no room'))), /no room/)
  t.equal(texts.at(-1), 'backup, seconds: failed\n')
})

t.test('nothing goes on once the work that was waited for is done', async (t) => {
  const { progress } = record(false)
  t.equal(await whileWaiting(progress, systemClock, 'backup', Promise.resolve('made')), 'made')
})

t.test('a terminal gets one line that is drawn again now and then', async (t) => {
  const { texts, run } = record(true)
  run(10_000)
  t.ok(texts.length > 50 && texts.length < 150, `${texts.length} times`)
  t.match(texts[50], /events \[#{12}\.{12}\] (49|50)\d\d of 10000$/)
  t.equal(texts.filter((text) => text.includes('\n')).length, 1)
  t.match(texts.at(-1), /events: 10000 rows\n$/)
})
