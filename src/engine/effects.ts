// From side effects that were decided to commands about lists and healed visitors: appended after the decisions are durable and before a checkpoint
// forgets them, so that none is lost. What is appended again, by this owner or the next, the owner of `changes` recognises.

import { makeCommandId, type RandomBytes } from '../domain/ids.ts'
import { foldListName } from '../domain/list.ts'
import type { DecidedErasure, EventsRecord } from '../events/record.ts'
import type { Clock } from '../lib/clock.ts'
import { APPEND_BYTES_MAX, APPEND_RECORDS_MAX, type Log, type Seq } from '../log/log.ts'
import { type Command, type CommandDraft, encodeCommand } from '../records/commands.ts'
import { type EventEffects, eventEffectsOf } from '../records/effects.ts'
import { EFFECTS_PER_COMMAND_MAX, type ListEffect } from '../records/list-commands.ts'
import { persist } from './append.ts'

export interface EffectsNeeds {
  readonly log: Pick<Log, 'append'>
  readonly clock: Clock
  readonly random: RandomBytes
  /** Unlike that of any other deployment. */
  readonly deployment: string
  readonly entriesMax: number
  readonly partitions: number
}

/** What one record of `events` asks of lists. */
export interface RecordEffects {
  readonly seq: Seq
  readonly events: readonly EventEffects[]
  readonly erased: readonly DecidedErasure[]
}

export const effectsOf = (seq: Seq, { items, erasure }: EventsRecord): RecordEffects => ({
  seq,
  events: eventEffectsOf(items),
  erased: erasure === undefined ? [] : [erasure],
})

/** Resolves when they are in `changes`, in the order of the records. */
export async function appendEffects(
  needs: EffectsNeeds,
  partition: number,
  records: readonly RecordEffects[],
): Promise<void> {
  const { log, clock, random } = needs
  let batch: Uint8Array[] = []
  let bytes = 0
  async function flush(): Promise<void> {
    const some = batch
    if (some.length > 0) await persist(clock, () => log.append('changes', 0, some))
    batch = []
    bytes = 0
  }
  for (const draft of records.flatMap((record) => commandsOf(needs, partition, record))) {
    const at = clock.now()
    const encoded = encodeCommand({ ...draft, id: makeCommandId(at, random), at } as Command)
    if (batch.length === APPEND_RECORDS_MAX || bytes + encoded.length > APPEND_BYTES_MAX) await flush()
    batch.push(encoded)
    bytes += encoded.length
  }
  await flush()
}

const NO_COMMANDS: readonly CommandDraft[] = []
const ACTOR = 'rules'
const HEALER = 'engine'

function commandsOf(
  { deployment, entriesMax, partitions }: EffectsNeeds,
  partition: number,
  { seq, events, erased }: RecordEffects,
): readonly CommandDraft[] {
  // Most records ask for nothing.
  if (events.length === 0 && erased.length === 0) return NO_COMMANDS
  const drafts: CommandDraft[] = []
  // A command for each list, because each is audited by itself.
  const lists = new Map<string, Pick<EventEffects, 'workspace' | 'env'> & { readonly effects: ListEffect[] }>()
  for (const { workspace, env, requestId, effects } of events) {
    for (const effect of effects) {
      if (effect.type === 'heal') {
        const { visitorId, survivor, confidence } = effect
        const data = { survivor, visitorId, partitions, requestId, confidence }
        drafts.push({ type: 'visitor.heal', workspace, env, actor: HEALER, data })
      }
      if (effect.type !== 'addToList' && effect.type !== 'removeFromList') continue
      const { type, ...rest } = effect
      const name = `${workspace}/${env}/${foldListName(effect.list)}`
      const list = lists.get(name) ?? { workspace, env, effects: [] }
      lists.set(name, list)
      list.effects.push({ ...rest, requestId, remove: type === 'removeFromList' })
    }
  }
  const parts = new Map<string, number>()
  for (const { workspace, env, effects } of lists.values()) {
    for (let from = 0; from < effects.length; from += EFFECTS_PER_COMMAND_MAX) {
      const some = effects.slice(from, from + EFFECTS_PER_COMMAND_MAX)
      const part = parts.get(`${workspace}/${env}`) ?? 0
      parts.set(`${workspace}/${env}`, part + 1)
      const data = { deployment, partition, seq, part, effects: some, entriesMax }
      drafts.push({ type: 'list.effects', workspace, env, actor: ACTOR, data })
    }
  }
  for (const { workspace, env, visitorId, survivor, former } of erased) {
    const named = { ...(survivor === undefined ? {} : { survivor }), ...(former === undefined ? {} : { former }) }
    const data = { visitorId, partitions, ...named }
    drafts.push({ type: 'list.forget', workspace, env, actor: ACTOR, data })
  }
  return drafts
}
