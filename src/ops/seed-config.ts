// The configuration that a made-up history belongs to: its workspace and the rules that judged it, written through `changes` like
// any other, and its lists.

import { LIST_MAXIMA } from '../api/lists/routes.ts'
import { RULE_MAXIMA } from '../api/rules/routes.ts'
import type { Bus } from '../bus/bus.ts'
import { createDefaultWorkspace, DEFAULT_WORKSPACE } from '../control/bootstrap.ts'
import { runControl } from '../control/owner.ts'
import { accepted, openSubmit, type Submitter } from '../control/submit.ts'
import type { Env } from '../domain/event.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Rule } from '../domain/rule.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import type { SeedList } from './seed-lists.ts'
import { RULES } from './seed-world.ts'

export interface SeedConfigNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
}

const ACTOR = 'seed'

/** The workspace by id or name; `default` is made when it does not exist yet. null: there is none. */
export async function seedWorkspace(needs: SeedConfigNeeds, wanted: string): Promise<Workspace | null> {
  const find = async () =>
    (await listWorkspaces(needs.kv)).find(({ id, name }) => id === wanted || name === wanted) ?? null
  const found = await find()
  if (found !== null || ![DEFAULT_WORKSPACE, 'default'].includes(wanted)) return found
  await withControl(needs, (submit) => createDefaultWorkspace(submit, needs.random, null))
  return find()
}

/** Makes the rules that are not there, and returns them as they judge the history, whatever has become of them. */
export async function seedRules(needs: SeedConfigNeeds, workspace: string, env: Env): Promise<readonly Rule[]> {
  await withControl(needs, async (submit) => {
    for (const rule of RULES) {
      const outcome = await submit({
        type: 'rule.create',
        workspace,
        env,
        actor: ACTOR,
        data: { ...rule, maxima: RULE_MAXIMA },
      })
      // Whoever seeded before made it, and it may have been changed since.
      if (!outcome.ok && outcome.code !== 'conflict') accepted(outcome)
    }
  })
  return RULES.map((rule) => ({ ...rule, createdAt: 0, updatedAt: 0 }))
}

/** Makes the lists that are not there, and adds what is missing of their entries. */
export async function seedLists(
  needs: SeedConfigNeeds,
  workspace: string,
  env: Env,
  lists: readonly SeedList[],
): Promise<void> {
  await withControl(needs, async (submit) => {
    const at = { workspace, env, actor: ACTOR }
    for (const { id, name, type, description, entries } of lists) {
      const data = { id, name, type, description, ttl: null, maxima: { listsMax: LIST_MAXIMA.listsMax } }
      const made = await submit({ ...at, type: 'list.create', data })
      if (!made.ok && made.code !== 'conflict') accepted(made)
      const add = entries.map((value) => ({ value }))
      const filled = { id, add, remove: [], source: 'import' as const, entriesMax: LIST_MAXIMA.entriesMax }
      const outcome = await submit({ ...at, type: 'list.entries', data: filled })
      // Somebody else's list has the name, or the list is gone again: it is not for a seed to say.
      if (!outcome.ok && outcome.code !== 'not_found') accepted(outcome)
    }
  })
}

/** Two owners of `changes` do no harm, so there is one here whether or not a process runs elsewhere. */
async function withControl<T>(needs: SeedConfigNeeds, work: (submit: Submitter['submit']) => Promise<T>): Promise<T> {
  const stopped = new AbortController()
  const { log, kv, bus, clock } = needs
  const owner = runControl({ log, kv, bus, clock, signal: stopped.signal, report: () => undefined })
  const submitter = openSubmit(needs)
  try {
    // An owner that fails takes the work with it.
    return await Promise.race([work(submitter.submit), owner.then(() => new Promise<never>(() => undefined))])
  } finally {
    submitter.close()
    stopped.abort()
    await owner.catch(() => undefined)
  }
}
