// Run by hostile.test.ts with and without the flag that forbids code generation: decides the same seeded events and prints
// what it decided. Arguments: seed, and optionally the mode to insist on.

import type { Mode } from '../../src/rules/codegen.ts'
import { generationAllowed } from '../../src/rules/generation.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { makeRule, member, randomFacts, randomGroup } from '../helpers/facts.ts'
import { rng } from '../helpers/rng.ts'

const r = rng(Number(process.argv[2]))
const mode = process.argv[3] as Mode | undefined
const rules = Array.from({ length: 150 }, (_, i) => makeRule(`rul_${i}`, randomGroup(r), { priority: r.int(20) }))
const workspace = { id: 'ws', plan: 'pro', settings: { clientResult: 'id' }, tokenSecret: '', apiVersion: '' } as const
const snapshot = encodeSnapshot({ workspace, env: 'live', revision: 1, rules })
const ruleset = openSnapshot(snapshot, { member, ...(mode === undefined ? {} : { mode }) })
const decisions = Array.from({ length: 30 }, () => {
  const { verdict, matchedRules } = ruleset.evaluate(randomFacts(r))
  return `${verdict} ${matchedRules.map((match) => match.id).join()}`
})
process.stdout.write(JSON.stringify({ generationAllowed, decisions }))
