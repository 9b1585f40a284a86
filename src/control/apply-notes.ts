// Entries of the audit log about what is done elsewhere: erasures, exports, what is said of events.

import { must } from '../lib/must.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'
import { isForgotten } from './corrections.ts'

export async function applyVisitorNote(command: CommandOf<'visitor.note'>, seq: number, read: Read): Promise<Change> {
  const { workspace, at, data } = command
  const env = must(command.env, 'an environment')
  if ((await readWorkspace(read, workspace)) === null) return refuse(seq, 'not_found')
  const { about, ...draft } = data
  const outcome = { ok: true, seq, at } as const
  // What came too late to go with an erased visitor would stay for good.
  if (about !== null && (await isForgotten(read, { workspace, env }, [about]))) return { outcome, effects: [] }
  // The visitor's own entries lie under its id already.
  const elsewhere = about === null || draft.resource === 'visitor' ? {} : { about }
  return { outcome, effects: [], audit: { ...draft, ...elsewhere } }
}
