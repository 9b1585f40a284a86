// Side effects of a rule prepared once and made for an event: values read from it, messages rendered.

import type { Facts } from '../domain/event.ts'
import { ENTRY_BYTES_MAX } from '../domain/list.ts'
import type { Rule, SideEffect } from '../domain/rule.ts'
import { field } from '../events/fields.ts'
import type { RuleEffect } from '../records/effects.ts'
import { compileTemplate } from './template.ts'

/** null: the value it needs is missing, or a claim where only what is known counts. */
export type MakeEffect = (facts: Facts) => RuleEffect | null

/** Paths of what a page can say as it likes. */
const CLAIMED = /^(?:email|linkedId|tag\..+)$/
const SLACK_MESSAGE = '{{rule.name}}: {{requestId}}'

/** Those that are more than a line in the log. */
export function prepareEffects(rule: Rule, options: { readonly scores: boolean }): MakeEffect[] {
  return (rule.action.sideEffects ?? []).flatMap((effect, index) => {
    const make = prepareEffect(effect, { ruleId: rule.id, index }, rule, options)
    return make === null ? [] : [make]
  })
}

function prepareEffect(
  effect: SideEffect,
  place: { readonly ruleId: string; readonly index: number },
  rule: Rule,
  options: { readonly scores: boolean },
): MakeEffect | null {
  switch (effect.type) {
    case 'log':
      return null
    case 'webhook':
      return () => ({ ...place, type: 'webhook', webhookId: effect.webhookId })
    case 'slack': {
      const render = compileTemplate(effect.message ?? SLACK_MESSAGE, rule, options)
      return (facts) => ({ ...place, type: 'slack', url: effect.url, message: render(facts) })
    }
    case 'addToList':
    case 'removeFromList': {
      const { value: path, verifiedOnly, ...rest } = { verifiedOnly: false, ...effect }
      const isClaim = verifiedOnly && CLAIMED.test(path)
      const read = field(path)?.read ?? (() => null)
      return (facts) => {
        if (isClaim && facts.keyKind !== 'secret') return null
        const value = read(facts)
        // What is longer than any entry cannot be one.
        const isValue = typeof value === 'string' && value.length > 0 && Buffer.byteLength(value) <= ENTRY_BYTES_MAX
        return isValue ? { ...place, ...rest, value } : null
      }
    }
  }
}
