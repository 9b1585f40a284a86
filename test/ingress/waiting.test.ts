import t from 'tap'
import { ApiError } from '../../src/domain/errors.ts'
import { createWaiting, type Settled } from '../../src/ingress/waiting.ts'
import { newCounts } from '../../src/lib/counts.ts'

const WAIT_MS = 100
const first = { bodyHash: 1, keyKind: 'public', scope: 'ws/live' } as const

function openWaiting() {
  let now = 0
  const waiting = createWaiting(WAIT_MS, () => now, newCounts(1))
  const told: [who: string, outcome: Settled | 'late', replayed?: boolean][] = []
  return {
    waiting,
    told,
    decided: (who: string) => (outcome: Settled, replayed: boolean) => void told.push([who, outcome, replayed]),
    late: (who: string) => () => void told.push([who, 'late']),
    pass(ms: number) {
      now += ms
      waiting.sweep()
    },
  }
}

t.test('who joined a request that could not be stored is told so at once', (t) => {
  const { waiting, told, decided, late } = openWaiting()
  waiting.open('req_1', 'nonce', first, decided('first'), late('first'))
  waiting.join('req_1', decided('second'), late('second'))
  const failure = new ApiError('unavailable')
  waiting.cancel('req_1', failure)
  t.same(told, [['second', { failure }, true]], 'the first knows from the failed append')
  t.equal(waiting.byNonce('nonce'), null)
  t.equal(waiting.isPending('ws/live', 'req_1'), false)
  t.equal(waiting.size(), 0)
  t.end()
})

t.test('whoever must not be called pending gets the decision however late it is', (t) => {
  const { waiting, told, decided, late, pass } = openWaiting()
  waiting.open('req_2', null, first, decided('repeat'), null)
  waiting.open('req_3', 'nonce', first, decided('first'), late('first'))
  waiting.stored('req_2')
  waiting.stored('req_3')
  pass(WAIT_MS - 1)
  t.same(told, [])
  pass(1)
  t.same(told, [['first', 'late']], 'the other is pending after its time')
  pass(100 * WAIT_MS)
  waiting.settle('req_2', { original: 'req_1', conflict: false })
  waiting.settle('req_3', { body: '{}' })
  t.same(told.slice(1), [['repeat', { original: 'req_1', conflict: false }, false]], 'once each')
  t.equal(waiting.size(), 0)
  t.end()
})

t.test('those who wait for one request are each told once, and who joins later waits as long', (t) => {
  const { waiting, told, decided, late, pass } = openWaiting()
  waiting.open('req_4', 'nonce', first, decided('first'), late('first'))
  waiting.stored('req_4')
  pass(WAIT_MS / 2)
  waiting.join('req_4', decided('second'), late('second'))
  pass(WAIT_MS / 2)
  t.same(told, [['first', 'late']])
  t.match(waiting.byNonce('nonce'), { requestId: 'req_4', bodyHash: first.bodyHash, keyKind: 'public' })
  waiting.settle('req_4', { body: '{}' })
  t.same(told.slice(1), [['second', { body: '{}' }, true]])
  pass(WAIT_MS)
  t.equal(told.length, 2)
  t.end()
})

t.test('an id that was given out and turns out to repeat a nonce leads to the first event, for its owner only', (t) => {
  const { waiting, decided, late, pass } = openWaiting()
  waiting.open('req_9', 'nonce', first, decided('client'), late('client'))
  waiting.stored('req_9')
  pass(WAIT_MS)
  t.equal(waiting.isPending('ws/live', 'req_9'), true)
  t.equal(waiting.isPending('ws/test', 'req_9'), false)
  waiting.settle('req_9', { original: 'req_1', conflict: false })
  t.same(waiting.originalOf('ws/live', 'req_9'), { requestId: 'req_1', conflict: false })
  t.equal(waiting.originalOf('ws/test', 'req_9'), null)
  t.end()
})

t.test('an id nobody was told is not remembered', (t) => {
  const { waiting, decided, late } = openWaiting()
  waiting.open('req_9', 'nonce', first, decided('client'), late('client'))
  waiting.settle('req_9', { original: 'req_1', conflict: false })
  t.equal(waiting.originalOf('ws/live', 'req_9'), null)
  t.end()
})

t.test('what was stored and not answered for long is asked about now and then, oldest first', (t) => {
  const { waiting, decided, late, pass } = openWaiting()
  for (const id of ['req_1', 'req_2', 'req_3']) {
    waiting.open(id, null, first, decided(id), late(id))
    if (id !== 'req_2') waiting.stored(id)
    pass(10)
  }
  t.same(waiting.overdue(50, 9), [], 'not yet')
  pass(50)
  t.same(waiting.overdue(50, 1), [{ requestId: 'req_1', scope: 'ws/live', keyKind: 'public' }])
  t.same(
    waiting.overdue(50, 9).map(({ requestId }) => requestId),
    ['req_3'],
    'neither one that is not stored, nor one just asked about',
  )
  pass(50)
  waiting.settle('req_1', { body: '{}' })
  t.same(waiting.overdue(50, 9).length, 1, 'nor one that is settled')
  t.end()
})
