// Which threads are taken for hanging: those whose loop turned and turns no more.

import t from 'tap'
import { openLogger } from '../../src/lib/logger.ts'
import type { Thread } from '../../src/shards/thread.ts'
import { createWatchdog } from '../../src/shards/watchdog.ts'

const MISSED_MAX = 4

function open() {
  const beats = new Int32Array(1)
  const ended: string[] = []
  const check = createWatchdog({ beats, missedMax: MISSED_MAX, logger: openLogger('silent') })
  const thread = (name: string) => ({ endHanging: async () => void ended.push(name) }) as unknown as Thread
  const checks = (count: number, one: Thread | null, beatsToo = false) => {
    for (let i = 0; i < count; i++) {
      if (beatsToo) Atomics.add(beats, 0, 1)
      check([one])
    }
  }
  return { ended, thread, checks }
}

t.test('a thread that beats is left alone, and one that stops is ended once', async (t) => {
  const { ended, thread, checks } = open()
  const one = thread('one')
  checks(3 * MISSED_MAX, one, true)
  checks(MISSED_MAX - 1, one)
  t.same(ended, [])
  checks(1, one)
  t.same(ended, ['one'])
})

t.test('one that has not beaten yet still loads its code, however long that takes', async (t) => {
  const { ended, thread, checks } = open()
  const [first, second] = [thread('first'), thread('second')]
  checks(10 * MISSED_MAX, first)
  checks(1, first, true)
  checks(MISSED_MAX, first)
  t.same(ended, ['first'], 'from its first beat on it is watched')
  checks(10 * MISSED_MAX, null)
  checks(10 * MISSED_MAX, second)
  t.same(ended, ['first'], 'and one in its place is new')
})
