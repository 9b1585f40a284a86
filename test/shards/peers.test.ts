// Whose way a call takes to another shard: that of the shard of its partition, or of the one that decides everything.

import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { openTurn } from '../../src/lib/turn.ts'
import type { Log } from '../../src/log/log.ts'
import { openPeers } from '../../src/shards/peers.ts'

const PARTITIONS = 4
const SELF = 1

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

const HELD = Array.from({ length: PARTITIONS }, () => 1)

t.test('where one other shard decides everything nobody need look whose a call is', async (t) => {
  const { others } = open(t, [0, 0, 0, 0], HELD)
  t.ok(others.decide())
  t.ok(others.wayToAll())
  t.equal(others.wayToAll(), others.wayTo(3))
})

t.test('where several decide, or another process, or this shard, each call takes its own way', async (t) => {
  for (const [what, owner, held] of [
    ['two shards', [0, 2, 0, 2], HELD],
    ['this one and another', [0, 0, 0, SELF], HELD],
    ['this one', [SELF, SELF, SELF, SELF], HELD],
    ['another process', [0, 0, 0, 0], [1, 1, 1, 0]],
    ['a shard that is lost', [7, 7, 7, 7], HELD],
  ] as const) {
    t.equal(open(t, owner, held).others.wayToAll(), null, what)
  }
  const { others } = open(t, [0, 2, SELF, 0], [1, 1, 1, 0])
  t.ok(others.wayTo(0))
  t.ok(others.wayTo(1))
  t.not(others.wayTo(0), others.wayTo(1))
  t.equal(others.wayTo(2), null, 'its own')
  t.equal(others.wayTo(3), null, 'of another process')
})
