// Whose way a call takes to another shard: that of the shard of its partition, or of the one that decides everything.

import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { openTurn } from '../../src/lib/turn.ts'
import type { Log } from '../../src/log/log.ts'
import { openPeers } from '../../src/shards/peers.ts'

const SELF = 1

const HELD = [1, 1, 1, 1]

function open(t: Test, owner: readonly number[], held: readonly number[]) {
  const near = openLocalBus({ onError: (error) => t.fail(String(error)) })
  const peers = openPeers({
    index: SELF,
    ingressIdOf: (index) => `in_${index}`,
    count: 3,
    isAlone: true,
    held: Int32Array.from(held),
    owner: Int32Array.from(owner),
    bells: new Int32Array(3),
    log: {} as Log,
    bus: near,
    near,
    turn: openTurn(),
    onError: (error) => t.fail(String(error)),
  })
  for (const index of [0, 2]) {
    const { port1, port2 } = new MessageChannel()
    peers.add({ index, port: port1 })
    t.teardown(() => port2.close())
  }
  t.teardown(() => peers.close())
  return peers
}

t.test('where one other shard decides everything nobody need look whose a call is', async (t) => {
  function wayOf(owner: number, held: readonly number[]) {
    return open(t, [owner, owner, owner, owner], held).others.wayFor(() => {
      t.fail('somebody looked')
      return null
    })
  }
  t.ok(wayOf(0, HELD))
  t.equal(wayOf(SELF, [1, 1, 1, 0]), null, 'this one')
  t.equal(wayOf(7, HELD), null, 'one that is lost')
})

t.test('where several decide, or another process, each call takes the way of its partition', async (t) => {
  const { others } = open(t, [0, 2, SELF, 0, 7], [1, 1, 1, 0, 1])
  const wayTo = (partition: number | null) => others.wayFor(() => partition)
  t.ok(wayTo(0))
  t.ok(wayTo(1))
  t.not(wayTo(0), wayTo(1))
  t.equal(wayTo(2), null, 'its own')
  t.equal(wayTo(3), null, 'of another process')
  t.equal(wayTo(4), null, 'of a shard that is lost')
  t.equal(wayTo(null), null, 'nobody can tell')
})
