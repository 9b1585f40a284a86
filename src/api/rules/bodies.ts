// What requests about rules may hold: the bodies of POST and PUT and the query of a list.

import { RULE_NAME_CHARS_MAX, RULE_STATUSES, type RuleStatus } from '../../domain/rule.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { PRIORITY_MAX, PRIORITY_MIN } from '../../records/rules.ts'
import { OFFSET, PAGE_LIMIT } from '../schemas.ts'

const CREATE_STATUSES: readonly RuleStatus[] = ['live', 'monitor', 'draft']
const name = Type.String({ minLength: 1, maxLength: RULE_NAME_CHARS_MAX })
const priority = Type.Integer({ minimum: PRIORITY_MIN, maximum: PRIORITY_MAX })

export const RuleCreateBody = Type.Object(
  {
    name,
    // What is inside is checked by the rule parsers, whose errors name the member.
    conditions: Type.Unknown(),
    action: Type.Unknown(),
    sideEffects: Type.Optional(Type.Unknown()),
    priority: Type.Optional(priority),
    status: Type.Optional(oneOf(CREATE_STATUSES)),
  },
  strict,
)
export const RuleUpdateBody = Type.Object(
  {
    name: Type.Optional(name),
    conditions: Type.Optional(Type.Unknown()),
    action: Type.Optional(Type.Unknown()),
    sideEffects: Type.Optional(Type.Unknown()),
    priority: Type.Optional(priority),
    status: Type.Optional(oneOf(RULE_STATUSES)),
  },
  strict,
)
export const RuleListQuery = Type.Object(
  { status: Type.Optional(oneOf(RULE_STATUSES)), limit: PAGE_LIMIT, offset: OFFSET },
  strict,
)
