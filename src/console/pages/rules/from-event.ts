// A rule made of an event: the signals it raised, or else what most tells it from others.

import type { ConditionGroup, Leaf } from '../../../domain/rule.ts'
import { signalWordOf } from '../../lib/format.ts'
import type { Event } from '../../lib/types.ts'
import type { RuleText } from './draft.ts'

const NESTED = ['bot', 'vpn']
const fieldOfSignal = (name: string): string => (NESTED.includes(name) ? `signals.${name}.detected` : `signals.${name}`)

export function ruleFrom(event: Event): RuleText {
  const raised = Object.entries(event.signals)
    .filter(([, value]) => (typeof value === 'object' ? value.detected : value))
    .map(([name]) => name)
  const leaves: Leaf[] = raised.map((name) => ({ field: fieldOfSignal(name), operator: 'equals', value: true }))
  if (leaves.length === 0) leaves.push({ field: 'visitorId', operator: 'equals', value: event.visitorId })
  const conditions: ConditionGroup = { operator: 'AND', rules: leaves }
  const what = raised.length === 0 ? `visitor ${event.visitorId}` : raised.map(signalWordOf).join(' and ')
  return { name: `Block ${what}`, conditions, action: { verdict: 'block' } }
}
