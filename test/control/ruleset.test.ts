// A ruleset read with the help of an earlier one, and encoded with the help of earlier texts, is the ruleset as it is.

import t from 'tap'
import type { RuleStatus } from '../../src/domain/rule.ts'
import type { CommandDraft } from '../../src/records/commands.ts'
import { type Ruleset, readRuleset } from '../../src/records/rules.ts'
import { createEncoder, encodeSnapshot, type Snapshot } from '../../src/rules/snapshot.ts'
import { createRule, createWorkspace, openPorts, prepare, startOwner, startSubmit } from '../helpers/control-plane.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const STEPS = 60
const STATUSES: readonly RuleStatus[] = ['live', 'monitor', 'paused', 'draft']
const textOf = ({ bytes }: Snapshot): string => Buffer.from(bytes).toString()

t.test('what is known of a ruleset saves reading and changes nothing', async (t) => {
  const seed = testSeed()
  t.comment(`SEED=${seed}`)
  const r = rng(seed)
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_a'))

  const ids: string[] = []
  const draft = (): CommandDraft => {
    const drawn = r.int(10)
    const about = { workspace: 'ws_a', env: 'live', actor: 'test' } as const
    const id = ids.length === 0 ? '' : r.pick(ids)
    const maxima = { rulesMax: 100, activeMax: 100 }
    if (drawn < 4 || id === '') {
      ids.push(`rul_${ids.length}`)
      return createRule('ws_a', `rul_${ids.length - 1}`, { priority: r.int(5), status: r.pick(STATUSES), maxima })
    }
    if (drawn === 4) return { ...about, type: 'rule.delete', data: { id } }
    if (drawn === 5) return { ...about, env: null, type: 'workspace.update', data: { name: `name ${r.int(9)}` } }
    const changes = r.chance(0.5) ? { priority: r.int(5) } : { name: `name ${r.int(99)}`, status: r.pick(STATUSES) }
    return { ...about, type: 'rule.update', data: { id, changes, maxima } }
  }

  const encode = createEncoder()
  let known: Ruleset | null = null
  let read: string[] = []
  const counting: Pick<typeof ports.kv, 'get' | 'scan'> = {
    scan: ports.kv.scan,
    get: (scope, keys) => {
      read.push(...keys.filter(([collection]) => collection === 'rule').map(([, id]) => id))
      return ports.kv.get(scope, keys)
    },
  }
  for (let step = 0; step < STEPS; step++) {
    const changes = 1 + r.int(3)
    for (let i = 0; i < changes; i++) await submit(draft())
    read = []
    const found: Ruleset | null = await readRuleset(counting, 'ws_a', 'live', known)
    const fresh = await readRuleset(ports.kv, 'ws_a', 'live')
    t.same(found, fresh)
    t.ok(read.length <= changes, `${read.length} rules read after ${changes} changes`)
    if (found === null) throw new Error('no ruleset')
    const input = { ...found, env: 'live' } as const
    t.equal(textOf(encode(input)), textOf(encodeSnapshot(input)))
    t.equal(textOf(encode(input)).length, JSON.stringify(JSON.parse(textOf(encode(input)))).length)
    known = found
  }
})
