// What must go wrong with visitors that the engine found to be one when that is not told, or told without asking who they are by now.

import type { KvKey } from '../../src/kv/kv.ts'
import { CORRECTION } from '../../src/records/aliases.ts'
import { decodeCommand } from '../../src/records/commands.ts'
import { type Mutation, onKv, onLog } from './mutations.ts'

function isHeal(bytes: Uint8Array): boolean {
  const command = decodeCommand(bytes)
  return typeof command !== 'string' && command.type === 'visitor.heal'
}

/** Whoever applies `changes` finds nothing under such keys. */
const blindTo = (isMeant: (key: KvKey) => boolean) =>
  onKv('control', (kv) => ({
    async get<T>(scope: string, keys: readonly KvKey[]) {
      const found = await kv.get<T>(scope, keys)
      return found.map((entry, i) => (isMeant(keys[i] as KvKey) ? null : entry))
    },
  }))

export const HEAL_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'heals',
    what: 'what a visit showed is not handed on before a checkpoint forgets it',
    seed: 2,
    options: { healing: true },
    tamper: onLog('engine', (log) => ({
      append: async (topic, partition, records, ...rest) => {
        const kept = topic === 'changes' ? records.filter((bytes) => !isHeal(bytes)) : records
        return kept.length === 0 && records.length > 0 ? 0 : log.append(topic, partition, kept, ...rest)
      },
    })),
  },
  {
    rule: 'heals',
    what: 'what people said of two visitors is not asked',
    seed: 38,
    options: { healing: true, splitting: true },
    tamper: blindTo(([kind]) => kind === CORRECTION),
  },
  {
    rule: 'heals',
    what: 'nobody asks whether a visitor is gone',
    seed: 5,
    options: { healing: true, erasing: true },
    tamper: blindTo(([kind]) => kind === 'forgotten'),
  },
]
