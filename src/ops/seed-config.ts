// The configuration that a made-up history belongs to: its workspace and the rules that judged it, written through `changes` like
// any other. Lists of a history are commands of the same kind.

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
import { RULES } from './seed-world.ts'

export interface SeedConfigNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
}

const ACTOR = 'seed'
const MAXIMA = { rulesMax: 5_000, activeMax: 1_000 }

/** The workspace by id or name; `default` is made when it does not exist yet. null: there is none. */
export async function seedWorkspace(needs: SeedConfigNeeds, wanted: string): Promise<Workspace | null> {
  const find = async () =>
    (await listWorkspaces(needs.kv)).find(({ id, name }) => id === wanted || name === wanted) ?? null
  const found = await find()
  if (found !== null || ![DEFAULT_WORKSPACE, 'default'].includes(wanted)) return found
  await withControl(needs, (submit) => createDefaultWorkspace(submit, needs.random))
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
        data: { ...rule, maxima: MAXIMA },
      })
      // Whoever seeded before made it, and it may have been changed since.
      if (!outcome.ok && outcome.code !== 'conflict') accepted(outcome)
    }
  })
  return RULES.map((rule) => ({ ...rule, createdAt: 0, updatedAt: 0 }))
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
