// What the API takes and shows of rules: conditions, actions, side effects, and rules in each of their forms.

import { CHALLENGE_TYPES, VERDICTS } from '../../domain/event.ts'
import { REASON_CHARS_MAX, TTL_SECONDS_MAX } from '../../domain/list.ts'
import {
  type ConditionGroup,
  IN_LITERALS_MAX,
  type Leaf,
  OPERATORS,
  RULE_NAME_CHARS_MAX,
  RULE_STATUSES,
  VALUE_CHARS_MAX,
} from '../../domain/rule.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { PRIORITY_MAX, PRIORITY_MIN } from '../../records/rules.ts'
import { MESSAGE_CHARS_MAX, SIDE_EFFECTS_MAX } from '../../rules/parse-effects.ts'
import { count, flag, moment, orNull, ruleId, shared, words } from '../describe.ts'

const LITERAL = {
  anyOf: [{ type: 'string', maxLength: VALUE_CHARS_MAX }, { type: 'number' }, { type: 'boolean' }],
} as const

export const Condition = shared(
  'Condition',
  Type.Object(
    {
      field: Type.String({
        maxLength: 200,
        description: 'A path of `GET /v1/rules/fields`, or `tag.<key>`.',
        examples: ['signals.bot.detected'],
      }),
      operator: oneOf(OPERATORS),
      value: Type.Unsafe<Leaf['value']>({
        anyOf: [...LITERAL.anyOf, { type: 'array', items: LITERAL, maxItems: IN_LITERALS_MAX }],
        description:
          'What to compare with. With `in` and `not_in` a text names a list, an array holds values. Whole addresses, e-mails and visitor ids are normalised as entries of lists are; ranges of addresses go on a list.',
      }),
    },
    strict,
  ),
)
export const Conditions = shared(
  'Conditions',
  Type.Unsafe<ConditionGroup>({
    type: 'object',
    description:
      'Groups nest 4 deep and hold 50 conditions in all. A missing value makes every operator but `exists` false.',
    required: ['operator', 'rules'],
    additionalProperties: false,
    properties: {
      operator: { type: 'string', enum: ['AND', 'OR'] },
      rules: { type: 'array', minItems: 1, items: { anyOf: [Condition, { $ref: '#/components/schemas/Conditions' }] } },
    },
  }),
)

const list = Type.String({ maxLength: 64, description: 'Name of a list.' })
const value = Type.Optional(
  Type.String({
    maxLength: 200,
    description: 'Path of the field that is entered; by the type of the list where absent.',
  }),
)
const message = Type.Optional(
  Type.String({ maxLength: MESSAGE_CHARS_MAX, description: 'May hold `{{visitorId}}` and other fields.' }),
)
const kind = <T extends string>(type: T) => Type.Unsafe<T>({ type: 'string', const: type })
export const SideEffect = shared(
  'SideEffect',
  Type.Union([
    Type.Object(
      {
        type: kind('addToList'),
        list,
        value,
        ttl: Type.Optional(
          Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 1, maximum: TTL_SECONDS_MAX }),
        ),
        reason: Type.Optional(Type.String({ maxLength: REASON_CHARS_MAX })),
        verifiedOnly: Type.Optional(
          Type.Boolean({
            description:
              '`true`: `email`, `linkedId` and `tag` of events with a public key are claims and are left out, counted in `side_effects_skipped_total`. Default false.',
          }),
        ),
      },
      strict,
    ),
    Type.Object({ type: kind('removeFromList'), list, value }, strict),
    Type.Object(
      { type: kind('webhook'), webhookId: Type.String({ pattern: '^(?:whk|wh)_[0-9A-Za-z]{1,64}$' }) },
      strict,
    ),
    Type.Object(
      {
        type: kind('slack'),
        url: Type.String({
          maxLength: 1_024,
          description: 'An https incoming webhook; shown masked.',
          examples: ['https://hooks.slack.example/services/T0/B0/x'],
        }),
        message,
      },
      strict,
    ),
    Type.Object(
      { type: kind('log'), level: Type.Optional(oneOf(['info', 'warn', 'error'])), message },
      {
        ...strict,
        description:
          'A line in the log of the service. It is out of its reach from then on: the erasure of a visitor does not remove it.',
      },
    ),
  ]),
)
export const SideEffects = Type.Array(SideEffect, { maxItems: SIDE_EFFECTS_MAX })
export const Action = shared(
  'Action',
  Type.Object(
    {
      verdict: oneOf(VERDICTS),
      challengeType: Type.Optional(
        Type.Unsafe<(typeof CHALLENGE_TYPES)[number]>({
          type: 'string',
          enum: CHALLENGE_TYPES,
          description: 'Only with the verdict `challenge`.',
        }),
      ),
      sideEffects: Type.Optional(SideEffects),
    },
    strict,
  ),
)

const id = ruleId()
const name = Type.String({ maxLength: RULE_NAME_CHARS_MAX })
const priority = Type.Integer({
  minimum: PRIORITY_MIN,
  maximum: PRIORITY_MAX,
  description: 'Lower is evaluated first.',
})
const status = oneOf(RULE_STATUSES)
const propagation = {
  propagated: flag('Whether every evaluator decides by it already.'),
  propagationMs: count('How long that took.'),
}

const definitionMembers = {
  id,
  name,
  status,
  priority,
  conditions: Conditions,
  action: Action,
  sideEffects: Type.Array(SideEffect),
  createdAt: moment(),
  updatedAt: moment(),
}
export const RuleDefinition = shared('RuleDefinition', Type.Object(definitionMembers))
export const Rule = shared(
  'Rule',
  Type.Object({
    ...definitionMembers,
    stats: Type.Object({ matchCount: count(), lastMatchAt: orNull(moment()), monitorMatchCount: count() }),
  }),
)
export const ListedRule = shared(
  'ListedRule',
  Type.Object({
    id,
    name,
    status,
    priority,
    conditions: Type.Object({ operator: oneOf(['AND', 'OR']), count: count('Conditions in all groups.') }),
    action: oneOf(VERDICTS),
    createdAt: moment(),
  }),
)
export const CreatedRule = shared(
  'CreatedRule',
  Type.Object({ id, name, priority, status, createdAt: moment(), ...propagation }),
)
export const UpdatedRule = shared(
  'UpdatedRule',
  Type.Object({ id, name, status, priority, updatedAt: moment(), ...propagation }),
)
export const RuleField = shared(
  'RuleField',
  Type.Object({
    path: words(),
    type: oneOf(['number', 'string', 'boolean', 'datetime', 'strings', 'any']),
    label: words(),
    category: words(),
    nullable: flag('Whether the value can be missing.'),
    operators: Type.Array(oneOf(OPERATORS)),
    list: orNull(oneOf(['visitor', 'ip', 'email', 'any'])),
    note: Type.Optional(words('What to mind with this field.')),
  }),
)
