// Addresses of Slack in rules, which are secrets: kept sealed behind the host, `https://hooks.slack.com/#v1.…`. No address that a rule
// may name has a fragment, and where it leads can be shown without opening it.

import type { RuleAction, SideEffect } from '../domain/rule.ts'
import { type Sealer, sealedBy } from '../lib/sealed.ts'

const CONTEXT = 'slack'
const sealedPart = (url: string): string => url.slice(url.indexOf('#') + 1)
const isSealed = (url: string): boolean => url.includes('#') && sealedBy(sealedPart(url)) !== null

export const hasOpenAddress = (effects: readonly SideEffect[] = []): boolean =>
  effects.some((effect) => effect.type === 'slack' && !isSealed(effect.url))

export const sealAddresses = (sealer: Pick<Sealer, 'seal'>, effects: readonly SideEffect[]): SideEffect[] =>
  effects.map((effect) =>
    effect.type !== 'slack' || isSealed(effect.url)
      ? effect
      : { ...effect, url: `${new URL(effect.url).origin}/#${sealer.seal(effect.url, CONTEXT)}` },
  )

export function sealAction<A extends RuleAction>(sealer: Pick<Sealer, 'seal'>, action: A): A {
  const { sideEffects } = action
  return hasOpenAddress(sideEffects) ? { ...action, sideEffects: sealAddresses(sealer, sideEffects ?? []) } : action
}

/** null: it was sealed under another key. */
export function openAddress(sealer: Pick<Sealer, 'open' | 'keyId'>, url: string): string | null {
  if (!isSealed(url)) return url
  return sealedBy(sealedPart(url)) === sealer.keyId ? sealer.open(sealedPart(url), CONTEXT) : null
}
