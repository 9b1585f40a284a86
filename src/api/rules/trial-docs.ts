// What the API shows of rules that are tried and of what became of them: simulations, backtests, monitoring, versions.

import { OPERATORS } from '../../domain/rule.ts'
import { oneOf, Type } from '../../domain/schema.ts'
import { AUDITED } from '../../records/audit.ts'
import {
  count,
  countsByName,
  flag,
  moment,
  orNull,
  type RouteDoc,
  requestId,
  ruleId,
  share,
  shared,
  visitorId,
  words,
} from '../describe.ts'
import { PENDING } from '../events/docs.ts'
import { RuleMatch, verdict } from '../events/schema.ts'
import { Action, Conditions, RuleDefinition } from './schema.ts'

export const actorMembers = {
  actor: words('The last four characters of a key, or the name of a part of the service.'),
  by: Type.Object({
    type: oneOf(['key', 'person', 'operator', 'rule', 'system']),
    id: words('The id of a key, or the name of a part of the service.'),
    label: orNull(words('Of a key: its label.')),
  }),
}
export const AuditEntry = shared(
  'AuditEntry',
  Type.Object({
    at: moment(),
    ...actorMembers,
    resource: oneOf(AUDITED),
    id: words(),
    action: words('create, update, delete, rotate, revoke, entries (how many, not which), erase, export and the like.'),
    before: Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'] }),
    after: Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'] }),
  }),
)
export const RuleVersion = shared(
  'RuleVersion',
  Type.Object({
    version: count(),
    etag: words(),
    at: moment(),
    actor: words(),
    action: words(),
    rule: orNull(RuleDefinition),
  }),
)

export const Simulation = shared(
  'Simulation',
  Type.Object({
    matched: flag(),
    verdict,
    matchedRules: Type.Array(RuleMatch),
    monitorMatches: Type.Array(RuleMatch),
    trace: Type.Array(
      Type.Object({
        ruleId: Type.Optional(ruleId()),
        path: words('Where the condition stands: `conditions.rules[0]`.'),
        field: words(),
        operator: oneOf(OPERATORS),
        value: Type.Unknown(),
        actual: Type.Unknown({ description: 'What the event has, masked; null: missing.' }),
        result: flag(),
      }),
    ),
    truncated: Type.Optional(flag('Set when the trace is cut.')),
  }),
)
export const MonitorReport = shared(
  'MonitorReport',
  Type.Object({
    evaluated: count('Events decided while the rule was monitored.'),
    matched: count(),
    wouldChange: countsByName('`allow→block`: how many verdicts would have been others.'),
    since: moment(),
  }),
)
export const Backtest = shared(
  'Backtest',
  Type.Object({
    ruleId: orNull(ruleId('null: the rule is not saved.')),
    matchCount: count(),
    totalEvents: count(),
    matchRate: share(),
    estimatedFpr: share('The share of legitimate events that the rule hits.'),
    fprBasis: oneOf(['labels', 'proxy', 'none']),
    fprInterval: orNull(Type.Array(share(), { minItems: 2, maxItems: 2, description: 'Wilson, 95 %.' })),
    precision: orNull(share()),
    recall: orNull(share()),
    labeled: Type.Object({ legitimate: count(), fraud: count() }),
    days: count(),
    durationMs: count(),
    listState: Type.Literal('current'),
    impact: countsByName('`allow→block`: verdicts then, and what they would be.'),
    byDay: Type.Array(Type.Object({ day: words(), total: count(), matched: count() })),
    sample: Type.Array(Type.Object({ requestId: requestId(), visitorId: visitorId(), timestamp: moment() })),
  }),
)

const conditions = {
  operator: 'AND',
  rules: [{ field: 'signals.vpn.detected', operator: 'equals', value: true }],
}
const id = 'rul_3fJ8sKd02LqPzX7mNbVt'
const backtest = {
  ruleId: id,
  matchCount: 42,
  totalEvents: 10_000,
  matchRate: 0.0042,
  estimatedFpr: 0.001,
  fprBasis: 'proxy',
  fprInterval: [0.0004, 0.0023],
  precision: null,
  recall: null,
  labeled: { legitimate: 0, fraud: 0 },
  days: 7,
  durationMs: 31,
  listState: 'current',
  impact: { 'allow→challenge': 42 },
  byDay: [{ day: '2026-11-20', total: 10_000, matched: 42 }],
  sample: [
    {
      requestId: 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN',
      visitorId: 'pv_7Hq2LmZx90TbVcRk4WsE',
      timestamp: '2026-11-20T18:04:05.123Z',
    },
  ],
}
const RANGE = {
  days: { description: 'How far back to look.', default: 7 },
  sampleSize: { description: 'How many matching events to show.', default: 10 },
}

export const RULE_TRIAL_DOCS = {
  simulate: {
    id: 'simulateRules',
    summary: 'Try rules on one event',
    description:
      'Send `requestId` or `event`, and at most one of `conditions` and `ruleId`; without them all rules are tried.',
    refusals: ['plan_required', 'not_found'],
    members: {
      conditions: Conditions,
      requestId: { description: 'A stored event.' },
      event: { description: 'An event as it might be; what is left out is missing for every condition.' },
      ruleId: { description: 'A stored rule, whatever its status.' },
    },
    bodyExample: { event: { signals: { vpn: { detected: true } } }, conditions },
    answers: {
      200: {
        description: 'What the rules make of the event.',
        schema: Simulation,
        example: {
          matched: true,
          verdict: null,
          matchedRules: [],
          monitorMatches: [],
          trace: [{ path: 'conditions.rules[0]', ...conditions.rules[0], actual: true, result: true }],
        },
      },
      202: PENDING,
    },
  },
  monitor: {
    id: 'getRuleMonitor',
    summary: 'See what a monitored rule would have changed',
    members: { days: { description: 'How far back to look.', default: 7 } },
    answers: {
      200: {
        description: 'Counts since the rule was monitored as it is.',
        schema: MonitorReport,
        example: {
          evaluated: 1_200,
          matched: 30,
          wouldChange: { 'allow→block': 30 },
          since: '2026-11-19T09:00:00.000Z',
        },
      },
    },
  },
  backtest: {
    id: 'backtestRule',
    summary: 'Backtest a rule',
    description:
      'The rule by itself over stored events. One backtest of a workspace runs at a time; another waits ten seconds.',
    members: RANGE,
    bodyExample: { days: 7, sampleSize: 1 },
    answers: { 200: { description: 'What the rule would have matched.', schema: Backtest, example: backtest } },
  },
  backtestUnsaved: {
    id: 'backtestConditions',
    summary: 'Backtest conditions that are not saved',
    refusals: ['plan_required'],
    members: { ...RANGE, conditions: Conditions, action: Action },
    bodyExample: { conditions, action: { verdict: 'challenge' }, days: 7 },
    answers: {
      200: {
        description: 'What the conditions would have matched.',
        schema: Backtest,
        example: { ...backtest, ruleId: null },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
