// What an alert watches, in words.

import type { AlertMetric, AlertOperator } from '../../../domain/alert.ts'
import type { Alert } from '../../lib/types.ts'

export const METRIC_WORDS: readonly (readonly [AlertMetric, string])[] = [
  ['events', 'Number of events'],
  ['block_rate', 'Share of blocked events'],
  ['match_rate', 'Share of events a rule matches'],
  ['signal_rate', 'Share of events with a signal'],
  ['webhook_failure_rate', 'Share of failed deliveries'],
  ['ingest_lag_ms', 'Age of the oldest undecided event (ms)'],
]
export const OPERATOR_WORDS: readonly (readonly [AlertOperator, string])[] = [
  ['gt', 'is more than'],
  ['gte', 'is at least'],
  ['lt', 'is less than'],
  ['lte', 'is at most'],
]

const wordOf = (all: readonly (readonly [string, string])[], name: string): string =>
  all.find(([one]) => one === name)?.[1] ?? name

export const conditionOf = ({ metric, operator, threshold, filters }: Alert): string => {
  const only = Object.entries(filters).map(([name, value]) => `${name} ${value}`)
  const of = only.length === 0 ? '' : ` (${only.join(', ')})`
  return `${wordOf(METRIC_WORDS, metric)}${of} ${wordOf(OPERATOR_WORDS, operator)} ${threshold}`
}
