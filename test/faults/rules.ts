// The rules in force while processes are killed, and what they must say: they look only at what a request says of itself,
// so that a few lines without the product's code can tell every verdict.

export type Verdict = 'allow' | 'challenge' | 'block'

/** What the rules look at. */
export interface Facts {
  readonly account: string | null
  readonly action: string
  readonly amount: number
}

interface Rule {
  readonly name: string
  readonly status: 'live' | 'monitor'
  readonly priority: number
  readonly action: { readonly verdict: Verdict; readonly challengeType?: string }
  readonly conditions: object
  readonly holds: (facts: Facts) => boolean
}

const BLOCKED = ['user_3', 'user_33', 'user_333']

export const RULES: readonly Rule[] = [
  {
    name: 'blocked accounts',
    status: 'live',
    priority: 10,
    action: { verdict: 'block' },
    conditions: { operator: 'AND', rules: [{ field: 'linkedId', operator: 'in', value: BLOCKED }] },
    holds: ({ account }) => account !== null && BLOCKED.includes(account),
  },
  {
    name: 'large payments',
    status: 'live',
    priority: 20,
    action: { verdict: 'challenge', challengeType: 'otp' },
    conditions: {
      operator: 'AND',
      rules: [
        { field: 'tag.action', operator: 'equals', value: 'payment' },
        { field: 'tag.amount', operator: 'gt', value: 800 },
      ],
    },
    holds: ({ action, amount }) => action === 'payment' && amount > 800,
  },
  {
    name: 'payments of accounts',
    status: 'live',
    priority: 30,
    action: { verdict: 'allow' },
    conditions: {
      operator: 'AND',
      rules: [
        { field: 'tag.action', operator: 'equals', value: 'payment' },
        { field: 'linkedId', operator: 'exists', value: true },
      ],
    },
    holds: ({ account, action }) => action === 'payment' && account !== null,
  },
  {
    name: 'logins',
    status: 'monitor',
    priority: 40,
    action: { verdict: 'block' },
    conditions: { operator: 'OR', rules: [{ field: 'tag.action', operator: 'equals', value: 'login' }] },
    holds: ({ action }) => action === 'login',
  },
]

export interface Expected {
  readonly verdict: Verdict
  /** Name of the rule that decides. */
  readonly deciding: string | null
  /** Names of the live rules that match, in order. */
  readonly matched: readonly string[]
  readonly monitored: readonly string[]
}

export function evaluate(facts: Facts): Expected {
  const holding = RULES.filter((rule) => rule.holds(facts))
  const matched = holding.filter((rule) => rule.status === 'live')
  return {
    verdict: matched[0]?.action.verdict ?? 'allow',
    deciding: matched[0]?.name ?? null,
    matched: matched.map((rule) => rule.name),
    monitored: holding.filter((rule) => rule.status === 'monitor').map((rule) => rule.name),
  }
}
