// The rulesets this thread decides by: loaded when a hint or a poll tells of a new revision, handed to the decider with the
// next step, confirmed to whoever waits for the change to be in force.

import { type Bus, pollEveryMs } from '../bus/bus.ts'
import { ENVS, type Env } from '../domain/event.ts'
import type { ThreadKv } from '../kv/remote.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import type { Sealer } from '../lib/sealed.ts'
import { registerEvaluator, rulesetName, unregister } from '../records/evaluators.ts'
import { onHint, publishHint } from '../records/hints.ts'
import { type Ruleset, readRuleset, readRulesetRevision } from '../records/rules.ts'
import { withOpenToken } from '../records/secrets.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import { createEncoder, type Snapshot } from '../rules/snapshot.ts'

export interface RulesetsNeeds {
  readonly kv: ThreadKv
  readonly bus: Bus
  readonly clock: Clock
  /** Names this thread among all that decide. */
  readonly evaluator: string
  readonly report: RulesetsReport
  /** Opens secrets of tokens; null: none is sealed. */
  readonly sealer: Pick<Sealer, 'open'> | null
}

export interface RulesetsReport {
  swapped(workspace: string, env: Env, revision: number): void
  failed(error: unknown): void
}

export interface Rulesets {
  /** One per workspace and environment. The array is replaced, never changed. */
  current(): readonly Snapshot[]
  /** Reads the ruleset of `<workspace>/<env>` now: a workspace can be used before any hint of it has come. */
  load(name: string): Promise<void>
  stop(): Promise<void>
}

const POLL_MS = 1_000
/** Well within the time for which an evaluator counts (records/evaluators.ts), and more so where a store may be slow. */
const HEARTBEAT_MS = { lossy: 3_000, lossless: 5_000 }

/** Resolves when every ruleset is loaded and this evaluator is registered. */
export async function openRulesets(needs: RulesetsNeeds): Promise<Rulesets> {
  const { kv, bus, clock, evaluator, report, sealer } = needs
  const held = new Map<string, Snapshot>()
  /** As they were read, so that a change costs the reading of what it changed. */
  const read = new Map<string, Ruleset>()
  const encode = createEncoder()
  const confirmed = new Map<string, number>()
  let current: readonly Snapshot[] = []
  const stopped = new AbortController()
  const isOver = () => stopped.signal.aborted

  async function refresh(workspace: string, env: Env): Promise<void> {
    const name = rulesetName(workspace, env)
    const revision = await readRulesetRevision(kv, workspace, env)
    if (revision === null || held.get(name)?.revision === revision) return
    const ruleset = await readRuleset(kv, workspace, env, read.get(name))
    // Two refreshes may overlap: an older answer must not replace a newer one.
    if (ruleset === null || (held.get(name)?.revision ?? -1) >= ruleset.revision) return
    read.set(name, ruleset)
    held.set(
      name,
      encode({
        workspace: withOpenToken(sealer, ruleset.workspace),
        env,
        revision: ruleset.revision,
        rules: ruleset.rules,
      }),
    )
    current = [...held.values()]
    // In the name of this evaluator somebody else may decide by now, or nobody.
    if (isOver()) return
    confirmed.delete(name)
    confirmed.set(name, ruleset.revision)
    publishHint(bus, 'ruleset.confirmed', { evaluator, workspace, env, revision: ruleset.revision })
    report.swapped(workspace, env, ruleset.revision)
    await heartbeat()
  }

  async function heartbeat(): Promise<void> {
    await registerEvaluator(kv, evaluator, confirmed)
  }

  async function refreshAll(): Promise<void> {
    for (const { id } of await listWorkspaces(kv)) await Promise.all(ENVS.map((env) => refresh(id, env)))
  }

  // Registered before anything is loaded: a change made in between waits for us, and an earlier one is what we load.
  try {
    await heartbeat()
    await refreshAll()
  } catch (error) {
    stopped.abort()
    throw error
  }
  const unsubscribe = onHint(bus, 'ruleset.revision', ({ workspace, env }) => {
    refresh(workspace, env).catch(report.failed)
  })
  async function repeat(everyMs: number, act: () => Promise<void>): Promise<void> {
    while (!isOver()) {
      await nextBeat(clock, everyMs, stopped.signal)
      if (!isOver()) await act().catch(report.failed)
    }
  }
  const repeating = Promise.all([
    repeat(pollEveryMs(bus, POLL_MS), refreshAll),
    repeat(bus.isLossy ? HEARTBEAT_MS.lossy : HEARTBEAT_MS.lossless, heartbeat),
  ])

  return {
    current: () => current,
    async load(name) {
      const [workspace = '', env] = name.split('/')
      await refresh(workspace, env as Env)
    },
    async stop() {
      unsubscribe()
      stopped.abort()
      await repeating
      await unregister(kv, evaluator).catch(report.failed)
    },
  }
}
