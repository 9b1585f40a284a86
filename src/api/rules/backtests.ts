// Backtests of saved and unsaved rules. They wait their turn, and end when their client leaves.

import { ApiError } from '../../domain/errors.ts'
import type { Verdict } from '../../domain/event.ts'
import type { ConditionGroup } from '../../domain/rule.ts'
import { type Static, strict, Type } from '../../domain/schema.ts'
import { isoTime, scoresVisible } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import {
  BACKTEST_DAYS_MAX,
  BACKTEST_MS_MAX,
  BACKTEST_SAMPLE_MAX,
  type BacktestNeeds,
  type BacktestResult,
  backtest,
} from '../../reads/backtest.ts'
import { type BacktestQueueConfig, openBacktestQueue, WorkspaceBusy } from '../../reads/backtest-queue.ts'
import { parseConditions } from '../../rules/parse.ts'
import { parseAction } from '../../rules/parse-action.ts'
import { type ApiRoute, type KeyedCall, keyed, type RouteReply } from '../routes.ts'
import { parseContext } from './context.ts'
import { existingRule } from './routes.ts'
import { RULE_TRIAL_DOCS } from './trial-docs.ts'

export interface BacktestRoutesNeeds extends BacktestNeeds {
  readonly kv: Kv
  readonly clock: Clock
  readonly queue?: Omit<BacktestQueueConfig, 'clock'>
}

const DAYS_DEFAULT = 7
const SAMPLE_DEFAULT = 10
const WAIT_MS_MAX = 10_000
/** Time to answer, after the wait and the work have each had theirs. */
const ANSWER_MS = 5_000
const RETRY_AFTER_SECONDS = 10

const RANGE = {
  days: Type.Optional(Type.Integer({ minimum: 1, maximum: BACKTEST_DAYS_MAX })),
  sampleSize: Type.Optional(Type.Integer({ minimum: 1, maximum: BACKTEST_SAMPLE_MAX })),
}
const SavedBody = Type.Object(RANGE, strict)
// What is inside conditions and action is checked by the rule parsers, whose errors name the member.
const UnsavedBody = Type.Object({ ...RANGE, conditions: Type.Unknown(), action: Type.Optional(Type.Unknown()) }, strict)

interface Asked {
  readonly ruleId: string | null
  readonly conditions: ConditionGroup
  readonly verdict: Verdict | null
}
type Range = Static<typeof SavedBody>

export function backtestRoutes(needs: BacktestRoutesNeeds): ApiRoute[] {
  const { kv, clock } = needs
  const queue = openBacktestQueue({ clock, waitMsMax: WAIT_MS_MAX, runMsMax: BACKTEST_MS_MAX, ...needs.queue })
  const deadlineMs = WAIT_MS_MAX + BACKTEST_MS_MAX + ANSWER_MS

  async function answer(call: KeyedCall<Range>, { ruleId, conditions, verdict }: Asked): Promise<RouteReply> {
    const { workspace, env } = call.caller
    const { days = DAYS_DEFAULT, sampleSize = SAMPLE_DEFAULT } = call.body
    const scores = scoresVisible(workspace.plan)
    const left = new AbortController()
    call.whenAborted(() => left.abort())
    try {
      const result = await queue.run(workspace.id, left.signal, (signal) =>
        backtest(needs, { workspace: workspace.id, env, conditions, verdict, scores, days, sampleSize }, signal),
      )
      return { body: present(ruleId, result) }
    } catch (error) {
      if (!(error instanceof WorkspaceBusy)) throw error
      throw new ApiError('rate_limited', {
        message: 'Another backtest of this workspace is running.',
        retryAfter: RETRY_AFTER_SECONDS,
      })
    }
  }

  return [
    keyed({
      method: 'POST',
      doc: RULE_TRIAL_DOCS.backtest,
      path: '/v1/rules/:ruleId/backtest',
      access: 'rules:read',
      body: SavedBody,
      deadlineMs,
      async handle(call) {
        const { caller, params } = call
        const { id: ruleId, conditions, action } = await existingRule(kv, caller, params.ruleId)
        return answer(call, { ruleId, conditions, verdict: action.verdict })
      },
    }),

    keyed({
      method: 'POST',
      doc: RULE_TRIAL_DOCS.backtestUnsaved,
      path: '/v1/rules/backtest',
      access: 'rules:read',
      body: UnsavedBody,
      deadlineMs,
      async handle(call) {
        const { caller, body } = call
        const context = await parseContext(kv, caller, body)
        const conditions = parseConditions(body.conditions, context)
        const action = body.action === undefined ? null : parseAction({ ...context, action: body.action })
        return answer(call, { ruleId: null, conditions, verdict: action?.verdict ?? null })
      },
    }),
  ]
}

const present = (ruleId: string | null, { sample, ...result }: BacktestResult) => ({
  ruleId,
  ...result,
  sample: sample.map(({ timestamp, ...event }) => ({ ...event, timestamp: isoTime(timestamp) })),
})
