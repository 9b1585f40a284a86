// Those who merge visitors that somebody was told about, now and then twice at once or both ways round, while the devices go on
// visiting.

import type { Env } from '../../src/domain/event.ts'
import type { CommandDraft, CommandOutcome } from '../../src/records/commands.ts'
import type { Rng } from '../helpers/rng.ts'
import { type Answered, visitorIdOf } from './clients.ts'
import { PARTITIONS, WORKSPACE } from './deployment.ts'
import type { Changed } from './operators.ts'
import type { ModelProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'

export interface Mergers {
  plan(count: number, ms: number): void
  /** Merges whose asker waits. */
  open(): number
}

export interface MergersNeeds {
  readonly scheduler: Scheduler
  /** Of its own, so that runs without merges do not depend on there being any elsewhere. */
  readonly random: Rng
  readonly ready: () => readonly ModelProcess[]
  readonly answers: () => readonly Answered[]
  readonly onChange: (changed: Changed) => void
}

const ANSWER_MS_MAX = 9_000
const AGAIN = 0.4
const APART_MS_MAX = 300

export function createMergers({ scheduler, random, ready, answers, onChange }: MergersNeeds): Mergers {
  let open = 0

  function drawPair(): { env: Env; pair: readonly [string, string] } | null {
    const env = random.chance(0.9) ? 'live' : 'test'
    const known = answers().filter(({ status, ask }) => status === 200 && ask.env === env)
    const ids = [...new Set(known.map(visitorIdOf))]
    if (ids.length < 2) return null
    const survivor = random.pick(ids)
    return { env, pair: [survivor, random.pick(ids.filter((id) => id !== survivor))] }
  }

  function merge(env: Env, [survivor, visitorId]: readonly [string, string]): void {
    const processes = ready()
    if (processes.length === 0) return
    const by = random.pick(processes)
    const data = { survivor, visitorId, partitions: PARTITIONS, entriesMax: 1_000 }
    const draft: CommandDraft = { type: 'visitor.merge', workspace: WORKSPACE, env, actor: 'model', data }
    let over = false
    open++
    const told = (outcome: CommandOutcome | null) => {
      if (over) return
      over = true
      open--
      scheduler.note('http', `${visitorId} merged into ${survivor}: ${outcome?.ok ?? 'unknown'}`)
      onChange({ draft, outcome, propagated: false, at: scheduler.now() })
    }
    by.host.step(0, () => {
      by.change(draft).then(
        ({ outcome }) => told(outcome),
        () => told(null),
      )
    })
    scheduler.after(ANSWER_MS_MAX, () => told(null))
  }

  function mergeSome(): void {
    const drawn = drawPair()
    if (drawn === null) return
    const { env, pair } = drawn
    merge(env, pair)
    if (!random.chance(AGAIN)) return
    const again = random.chance(0.5) ? pair : ([pair[1], pair[0]] as const)
    scheduler.after(random.pick([0, random.float() * APART_MS_MAX]), () => merge(env, again))
  }

  return {
    plan(count, ms) {
      for (let i = 0; i < count; i++) scheduler.after(random.float() * ms, mergeSome)
    },
    open: () => open,
  }
}
