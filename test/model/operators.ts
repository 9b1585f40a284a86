// Operators of the simulation: they change rules and remember what they were told.

import type { Env } from '../../src/domain/event.ts'
import type { CommandDraft, CommandOutcome } from '../../src/records/commands.ts'
import { MAXIMA, ruleDraft, WORKSPACE } from './deployment.ts'
import type { ModelProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'

export interface Changed {
  readonly draft: CommandDraft
  /** null: the operator was told nothing. */
  readonly outcome: CommandOutcome | null
  readonly propagated: boolean
  /** Virtual milliseconds of the answer. */
  readonly at: number
}

export interface Operators {
  plan(count: number, ms: number): void
  /** Changes whose operator waits. */
  open(): number
}

const ANSWER_MS_MAX = 9_000
const ENVS: readonly Env[] = ['live', 'test']

export function createOperators(
  scheduler: Scheduler,
  ready: () => readonly ModelProcess[],
  onChange: (changed: Changed) => void,
): Operators {
  const { random } = scheduler
  let open = 0

  function draw(number: number): CommandDraft {
    const env = random.pick(ENVS)
    const id = random.pick([`rul_${env}`, `rul_${number}`, `rul_${number - 1}`])
    const from = { workspace: WORKSPACE, env, actor: 'model' } as const
    const status = random.pick(['live', 'monitor', 'paused'] as const)
    const verdict = random.pick(['allow', 'block'] as const)
    return random.pick<CommandDraft>([
      ruleDraft(id, env, { priority: random.int(3), action: { verdict } }),
      { ...from, type: 'rule.update', data: { id, maxima: MAXIMA, changes: { status } } },
      { ...from, type: 'rule.update', data: { id, maxima: MAXIMA, changes: { action: { verdict } } } },
      { ...from, type: 'rule.delete', data: { id } },
    ])
  }

  function change(number: number): void {
    const processes = ready()
    if (processes.length === 0) return
    const by = random.pick(processes)
    const draft = draw(number)
    let over = false
    open++
    const told = (outcome: CommandOutcome | null, propagated: boolean) => {
      if (over) return
      over = true
      open--
      scheduler.note('http', `rule change ${outcome?.ok ?? 'unknown'}${propagated ? ' in force' : ''}`)
      onChange({ draft, outcome, propagated, at: scheduler.now() })
    }
    by.host.step(0, () => {
      by.change(draft).then(
        ({ outcome, propagated }) => told(outcome, propagated),
        () => told(null, false),
      )
    })
    scheduler.after(ANSWER_MS_MAX, () => told(null, false))
  }

  return {
    plan(count, ms) {
      for (let number = 1; number <= count; number++) scheduler.after(random.float() * ms, () => change(number))
    },
    open: () => open,
  }
}
