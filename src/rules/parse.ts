// Conditions as a client sent them → a checked tree, or the contract's error naming the member at fault.

import { ApiError, invalid } from '../domain/errors.ts'
import { isListName, type ListType, normaliseNewEntry } from '../domain/list.ts'
import {
  CONDITION_DEPTH_MAX,
  CONDITION_LEAVES_MAX,
  type ConditionGroup,
  type ConditionOperator,
  IN_LITERALS_MAX,
  type Leaf,
  type Literal,
  OPERATORS,
  VALUE_CHARS_MAX,
} from '../domain/rule.ts'
import { isWebhookId } from '../domain/webhook.ts'
import type { Plan } from '../domain/workspace.ts'
import { type Field, type FieldType, field } from '../events/fields.ts'
import { scoresVisible } from '../events/present.ts'
import { parseDatetime } from '../lib/datetime.ts'

/** What parsing needs to know of the workspace. */
export interface ParseContext {
  readonly plan: Plan
  /** A list by name, case-insensitive; null when there is none. */
  readonly lists: (name: string) => { readonly type: ListType } | null
  /** Whether there is a webhook of this id; absent: nobody asks. */
  readonly webhooks?: (id: string) => boolean
  /** Texts that the rule compares with already. */
  readonly known?: ReadonlySet<string>
}

/** The field at a path, checked against the plan. Throws validation_error or plan_required, both naming `at`. */
export function allowedField(path: string, plan: Plan, at: string): Field {
  const found = field(path)
  if (found === null) throw invalid(at, 'No such field. See GET /v1/rules/fields.')
  if (found.category === 'scores' && !scoresVisible(plan)) {
    throw new ApiError('plan_required', { field: at, message: 'Scores need the Pro plan or above.' })
  }
  return found
}

/** An own-property view of a plain JSON object. Throws validation_error naming `at`, or the first member not in `known`. */
export function members(value: unknown, at: string, known: readonly string[]): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(at, 'Must be an object.')
  const entries = new Map<string, unknown>(Object.entries(value))
  for (const name of entries.keys()) {
    if (!known.includes(name)) throw invalid(`${at}.${name.slice(0, 64)}`, 'Unknown field.')
  }
  return entries
}

const LIST_NAMES_MAX = 200
const WEBHOOKS_ASKED_MAX = 20
const LIST_NAME_MEMBERS: readonly string[] = ['value', 'list']

/** Every text in a rule's JSON that may name a list, checked or not: what parsing will ask for. */
export function listNamesIn(json: unknown): string[] {
  const names = new Set<string>()
  const waiting: unknown[] = [json]
  while (waiting.length > 0 && names.size < LIST_NAMES_MAX) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner === 'object') waiting.push(inner)
      else if (typeof inner === 'string' && LIST_NAME_MEMBERS.includes(name) && isListName(inner)) names.add(inner)
    }
  }
  return [...names]
}

/** Every text in a rule's JSON that may be the id of a webhook. */
export function webhookIdsIn(json: unknown): string[] {
  const effects = [json, (json as { action?: unknown } | null)?.action].flatMap((of) => {
    const found = (of as { sideEffects?: unknown } | null | undefined)?.sideEffects
    return Array.isArray(found) ? found.slice(0, WEBHOOKS_ASKED_MAX) : []
  })
  const ids = effects.map((effect) => (effect as { webhookId?: unknown } | null)?.webhookId)
  return [...new Set(ids.filter((id): id is string => typeof id === 'string' && isWebhookId(id)))]
}

const LONE_SURROGATE = /\p{Surrogate}/u

/** A text of bounded length that survives every encoding. Throws validation_error naming `at`. */
export function boundedText(value: unknown, at: string, charsMax: number): string {
  if (typeof value !== 'string') throw invalid(at, 'Must be a string.')
  if (value.length > charsMax) throw invalid(at, `Must have at most ${charsMax} characters.`)
  if (LONE_SURROGATE.test(value)) throw invalid(at, 'Must be well-formed Unicode.')
  return value
}

/**
 * Checks conditions given as JSON. `at` is the path the errors start from.
 * Throws ApiError validation_error, or plan_required for a score below Pro.
 */
export function parseConditions(input: unknown, context: ParseContext, at = 'conditions'): ConditionGroup {
  let leaves = 0

  function group(value: unknown, path: string, depth: number): ConditionGroup {
    if (depth > CONDITION_DEPTH_MAX) throw invalid(path, `Groups may be nested ${CONDITION_DEPTH_MAX} levels deep.`)
    const got = members(value, path, ['operator', 'rules'])
    const operator = got.get('operator')
    if (operator !== 'AND' && operator !== 'OR') throw invalid(`${path}.operator`, 'Must be AND or OR.')
    const rules = got.get('rules')
    if (!Array.isArray(rules)) throw invalid(`${path}.rules`, 'Must be an array.')
    if (rules.length === 0) throw invalid(`${path}.rules`, 'Must have at least one item.')
    // Not `map`: it would build every item of a huge array's error path before the count is refused.
    const parsed: (Leaf | ConditionGroup)[] = []
    for (const [i, rule] of rules.entries()) parsed.push(item(rule, `${path}.rules[${i}]`, depth))
    return { operator, rules: parsed }
  }

  function item(value: unknown, path: string, depth: number): Leaf | ConditionGroup {
    const isGroup =
      typeof value === 'object' && value !== null && Object.hasOwn(value, 'rules') && !Object.hasOwn(value, 'field')
    if (isGroup) return group(value, path, depth + 1)
    leaves += 1
    if (leaves > CONDITION_LEAVES_MAX) throw invalid(at, `Must have at most ${CONDITION_LEAVES_MAX} conditions.`)
    return parseLeaf(value, path, context)
  }

  return group(input, at, 1)
}

function parseLeaf(value: unknown, path: string, { plan, lists, known }: ParseContext): Leaf {
  const got = members(value, path, ['field', 'operator', 'value'])
  const name = got.get('field')
  if (typeof name !== 'string') throw invalid(`${path}.field`, 'Must be a string.')
  if (LONE_SURROGATE.test(name)) throw invalid(`${path}.field`, 'Must be well-formed Unicode.')
  const found = allowedField(name, plan, `${path}.field`)
  const operator = got.get('operator')
  if (!OPERATORS.includes(operator as ConditionOperator)) {
    throw invalid(`${path}.operator`, `Must be one of: ${OPERATORS.join(', ')}.`)
  }
  if (!found.operators.includes(operator as ConditionOperator)) {
    throw invalid(`${path}.operator`, `A ${found.type} field takes: ${found.operators.join(', ')}.`)
  }
  const at = `${path}.value`
  if (!got.has('value')) throw invalid(at, 'This field is required.')
  return {
    field: name,
    operator: operator as ConditionOperator,
    value: operand(found, operator as ConditionOperator, got.get('value')),
  }

  function operand(of: Field, op: ConditionOperator, raw: unknown): Literal | readonly Literal[] {
    if (op === 'exists') {
      if (typeof raw !== 'boolean') throw invalid(at, 'exists takes true or false.')
      return raw
    }
    if (op !== 'in' && op !== 'not_in')
      return op === 'equals' || op === 'not_equals' ? literalOf(of, raw) : literal(of.type, raw, at)
    if (typeof raw === 'string') return listName(of, raw)
    if (!Array.isArray(raw)) throw invalid(at, 'Must be the name of a list or an array of values.')
    if (raw.length > IN_LITERALS_MAX) throw invalid(at, `Must have at most ${IN_LITERALS_MAX} items.`)
    if (raw.length === 0) throw invalid(at, 'Must have at least one item.')
    return raw.map((one) => literalOf(of, one))
  }

  /**
   * In the one spelling that events have; another would never be met. A text that can be no visitor's id is refused, and a range, which
   * looks as if it were met by what is in it; what the rule says already may stay.
   */
  function literalOf(of: Field, one: unknown): Literal {
    const read = literal(of.type, one, at)
    if (of.list === null || of.list === 'any' || typeof read !== 'string' || known?.has(read)) return read
    const entry = normaliseNewEntry(of.list, read)
    if (of.list === 'visitor' && entry === null) {
      throw invalid(at, 'Must be a visitor id, pv_ and 20 letters or digits.')
    }
    if (of.list === 'ip' && entry?.includes('/')) throw invalid(at, 'Must be one IP address: ranges go on a list.')
    return entry ?? read
  }

  function listName(of: Field, raw: string): string {
    const list = raw.length <= 64 ? lists(raw) : null
    if (list === null) throw invalid(at, 'No list of this name.')
    if (of.list !== 'any' && of.list !== list.type) {
      throw invalid(at, `A list of type ${list.type} does not suit this field.`)
    }
    return raw
  }
}

function literal(type: FieldType, raw: unknown, at: string): Literal {
  switch (type) {
    case 'number':
      if (typeof raw !== 'number' || !Number.isFinite(raw)) throw invalid(at, 'Must be a number.')
      return raw
    case 'boolean':
      if (typeof raw !== 'boolean') throw invalid(at, 'Must be true or false.')
      return raw
    case 'string':
    case 'strings':
      return boundedText(raw, at, VALUE_CHARS_MAX)
    case 'datetime':
      if (typeof raw !== 'string' || parseDatetime(raw) === null) {
        throw invalid(at, 'Must be an RFC 3339 date and time with Z or an offset.')
      }
      return raw
    case 'any':
      if (typeof raw === 'boolean' || (typeof raw === 'number' && Number.isFinite(raw))) return raw
      if (typeof raw !== 'string') throw invalid(at, 'Must be a string, a number, true or false.')
      return boundedText(raw, at, VALUE_CHARS_MAX)
  }
}
