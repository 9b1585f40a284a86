// The end of a turn: the order of its phases, whoever asks first, and that nothing that is asked for is left out.

import t from 'tap'
import { openTurn } from '../../src/lib/turn.ts'

/** Runs what was planned, one after the other, and lets promises settle after each, as `setImmediate` does. */
function openLoop() {
  let planned: (() => void)[] = []
  return {
    later: (run: () => void) => void planned.push(run),
    async turn(): Promise<number> {
      const runs = planned
      planned = []
      for (const run of runs) {
        run()
        await new Promise((resolve) => setImmediate(resolve))
      }
      return runs.length
    },
  }
}

t.test(
  'what is known is told, what was taken is appended and what follows from that is sent in the same turn, whoever asked first',
  async (t) => {
    const loop = openLoop()
    const turn = openTurn(loop.later)
    const order: string[] = []
    turn.send(() => order.push('sent 1'))
    turn.tell(() => {
      order.push('told')
      turn.take(() => order.push('taken behind it'))
    })
    turn.take(() => {
      order.push('taken')
      void Promise.resolve().then(() => {
        order.push('decided')
        turn.append(() => {
          order.push('appended')
          turn.send(() => order.push('sent 2'))
        })
      })
    })
    turn.take(() => order.push('taken too'))
    await loop.turn()
    t.same(order, ['told', 'taken', 'taken too', 'taken behind it', 'decided', 'appended', 'sent 1', 'sent 2'])
    t.equal(await loop.turn(), 0, 'an idle turn plans nothing')
  },
)

t.test('what asks for a phase that is over has the next turn, and nothing is done twice', async (t) => {
  const loop = openLoop()
  const turn = openTurn(loop.later)
  const order: string[] = []
  turn.append(() => {
    order.push('appended')
    turn.take(() => order.push('taken'))
  })
  await loop.turn()
  t.same(order, ['appended'])
  turn.send(() => order.push('sent'))
  await loop.turn()
  t.same(order, ['appended', 'taken', 'sent'])
  await loop.turn()
  t.same(order, ['appended', 'taken', 'sent'])
})

t.test('the end of a turn is told when nothing is left to do, and its beginning each time anew', async (t) => {
  const loop = openLoop()
  const told: string[] = []
  const turn = openTurn(loop.later, { began: () => void told.push('began'), ended: () => void told.push('ended') })
  turn.take(() => told.push('taken'))
  turn.append(() => {
    told.push('appended')
    turn.take(() => told.push('taken later'))
  })
  t.same(told, ['began'])
  await loop.turn()
  t.same(told.splice(0), ['began', 'taken', 'appended', 'began'], 'another turn follows: it did not end')
  await loop.turn()
  t.same(told, ['taken later', 'ended'])
})
