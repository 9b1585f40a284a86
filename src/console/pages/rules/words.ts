// Operators and verdicts in words, and what can be asked of a field.

import type { ConditionOperator } from '../../../domain/rule.ts'
import type { RuleField } from '../../lib/types.ts'

const OPERATORS: Readonly<Record<ConditionOperator, string>> = {
  equals: 'is',
  not_equals: 'is not',
  gt: 'is more than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  in: 'is one of / on list',
  not_in: 'is none of / not on list',
  contains: 'contains',
  exists: 'is known',
}
export const operatorWord = (operator: string): string => OPERATORS[operator as ConditionOperator] ?? operator

/** What a condition asks of its field, in words and, where one is compared with, the value. */
export function questionOf(operator: string, value: unknown): readonly [words: string, value: string | null] {
  if (operator === 'exists') return [value === false ? 'is not known' : 'is known', null]
  return [operatorWord(operator), JSON.stringify(value)]
}

export const UNSAVED = 'Save or discard your changes to the rule first.'

/** The field a path names, `tag.<key>` included; null: there is none. */
export function fieldOf(fields: readonly RuleField[], path: string): RuleField | null {
  const found = fields.find((field) => field.path === path)
  if (found !== undefined) return found
  return /^tag\../.test(path) ? (fields.find((field) => field.path === 'tag.<key>') ?? null) : null
}

/** Those that fit what was typed: path, label or category; those that begin with it first. */
export function fieldsFor(fields: readonly RuleField[], text: string): readonly RuleField[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all = fields.filter(({ path, label, category }) => {
    const within = `${path} ${label} ${category}`.toLowerCase()
    return words.every((word) => within.includes(word))
  })
  const begins = ({ path }: RuleField) => path.toLowerCase().startsWith(words[0] ?? '')
  return [...all.filter(begins), ...all.filter((field) => !begins(field))]
}

/** The path that is most like one that names nothing; null: none is. */
export function nearestField(fields: readonly RuleField[], path: string): string | null {
  const LETTERS_OFF_MAX = 4
  const ranked = fields
    .map((field) => ({ path: field.path, off: lettersOff(field.path.toLowerCase(), path.toLowerCase()) }))
    .sort((a, b) => a.off - b.off)
  const [best] = ranked
  return best !== undefined && best.off <= LETTERS_OFF_MAX ? best.path : null
}

/** Levenshtein's distance. */
function lettersOff(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
