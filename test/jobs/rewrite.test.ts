// A rewriting of the embedded stores: what it notes as done is done, whatever was still on its way when it began.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { homePartition, makeObjectId } from '../../src/domain/ids.ts'
import { rewriteStores } from '../../src/jobs/rewrite.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type Command, encodeCommand } from '../../src/records/commands.ts'
import { executedPuts, readRewrite } from '../../src/records/erasure-progress.ts'
import { ERASED, erasedId } from '../../src/records/erasures.ts'
import { partitionScope } from '../../src/records/partitions.ts'
import { CHANGES_READER, SYSTEM } from '../../src/records/scopes.ts'
import { openPorts, PARTITIONS, type Ports, prepare, random } from '../helpers/control-plane.ts'

const AT = { workspace: 'ws_1', env: 'live' } as const
const ERASED_ONE = `pv_${'a'.repeat(20)}`

/** Ports where a visitor was erased whose last command is behind what was applied. */
async function openErased(t: Parameters<typeof openPorts>[0]) {
  const ports = await openPorts(t)
  await prepare(ports)
  const at = systemClock.now() - 1_000
  const erasureId = makeObjectId('era', random)
  const erased = erasedId(AT.workspace, AT.env, ERASED_ONE)
  await ports.kv.commit([
    {
      scope: partitionScope(homePartition(ERASED_ONE, PARTITIONS)),
      put: [
        { key: [ERASED, erased], value: { erasureId, at } },
        ...executedPuts([{ ...AT, erasureId, at, erased }], { at, seq: 1 }),
      ],
    },
  ])
  const command: Command = {
    ...AT,
    id: `cmd_${'0'.repeat(26)}`,
    at,
    actor: 'rules',
    type: 'list.forget',
    data: { visitorId: ERASED_ONE, partitions: PARTITIONS },
  }
  const seq = await ports.log.append('changes', 0, [encodeCommand(command)])
  return { ports, seq }
}

const needsOf = ({ kv, log }: Ports, sleep: () => Promise<void>) => ({
  kv,
  log,
  clock: { now: () => systemClock.now(), monotonic: () => systemClock.monotonic(), sleep },
  partitions: PARTITIONS,
  everyMs: 1,
})

const isNamed = ({ folder }: Ports) => readFileSync(join(folder, 'log', 'data.mdb')).includes(ERASED_ONE)

t.test(
  'a command that names an erased visitor is applied and renamed before the rewriting counts as done',
  async (t) => {
    const { ports, seq } = await openErased(t)
    t.ok(isNamed(ports))
    let pauses = 0
    const apply = async () => {
      pauses += 1
      if (pauses !== 3) return
      const expect = await ports.kv.position(SYSTEM, CHANGES_READER)
      await ports.kv.commit([{ scope: SYSTEM, guard: { source: CHANGES_READER, expect, next: seq } }])
    }
    await rewriteStores(needsOf(ports, apply), new AbortController().signal)
    t.ok(pauses >= 3)
    t.not(await readRewrite(ports.kv), null)
    t.notOk(isNamed(ports), 'no byte of the id is left')
  },
)

t.test('while it is not applied nothing is noted', async (t) => {
  const { ports } = await openErased(t)
  const stopping = new AbortController()
  await rewriteStores(
    needsOf(ports, async () => stopping.abort()),
    stopping.signal,
  )
  t.equal(await readRewrite(ports.kv), null)
  t.ok(isNamed(ports))
})
