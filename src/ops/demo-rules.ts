// The configuration that `fingerpost seed --demo` makes: rules that decide and one that only watches, lists with entries, an alert.

import type { AlertDraft, ListDraft, NewListEntry, RuleDraft } from '../client/types.ts'

export interface DemoList {
  readonly list: ListDraft
  readonly entries: readonly NewListEntry[]
}

const DAY_SECONDS = 86_400

/** Filled before the visits. */
export const DEMO_LISTS: readonly DemoList[] = [
  {
    list: { name: 'demo_bad_addresses', type: 'ip', description: 'Where card testing came from' },
    entries: [
      { value: '198.51.100.192/27', reason: 'scrapers' },
      { value: '192.0.2.66', reason: 'chargeback', ttl: 30 * DAY_SECONDS },
      { value: '192.0.2.67', reason: 'chargeback', ttl: 30 * DAY_SECONDS },
    ],
  },
  {
    list: { name: 'demo_partner_mail', type: 'email', description: 'People of partners, who test at night' },
    entries: [{ value: 'user_3@mail.example' }, { value: 'user_6@mail.example' }, { value: 'user_9@mail.example' }],
  },
]
/** Filled with visitors that came. */
export const DEMO_REGULARS: ListDraft = {
  name: 'demo_regulars',
  type: 'visitor',
  description: 'Visitors that came most often',
}

/** In the order in which they are asked. */
export const DEMO_RULES: readonly RuleDraft[] = [
  {
    name: 'Demo: bots',
    status: 'live',
    action: { verdict: 'block' },
    conditions: { operator: 'AND', rules: [{ field: 'signals.bot', operator: 'equals', value: true }] },
  },
  {
    name: 'Demo: many accounts on one device',
    status: 'live',
    action: { verdict: 'block' },
    conditions: { operator: 'AND', rules: [{ field: 'visitor.linkedAccounts', operator: 'gte', value: 5 }] },
  },
  {
    name: 'Demo: known bad address, or Tor',
    status: 'live',
    action: { verdict: 'challenge', challengeType: 'captcha' },
    conditions: {
      operator: 'OR',
      rules: [
        { field: 'ip', operator: 'in', value: 'demo_bad_addresses' },
        { field: 'signals.tor', operator: 'equals', value: true },
      ],
    },
  },
  {
    name: 'Demo: VPN at the till',
    status: 'live',
    action: { verdict: 'challenge', challengeType: 'otp' },
    conditions: {
      operator: 'AND',
      rules: [
        { field: 'signals.vpn', operator: 'equals', value: true },
        { field: 'tag.action', operator: 'in', value: ['signup', 'checkout'] },
      ],
    },
  },
  {
    name: 'Demo: checkout in a private window',
    status: 'monitor',
    action: { verdict: 'challenge', challengeType: 'email' },
    conditions: {
      operator: 'AND',
      rules: [
        { field: 'signals.incognito', operator: 'equals', value: true },
        { field: 'tag.action', operator: 'equals', value: 'checkout' },
      ],
    },
  },
]

export const DEMO_ALERT: AlertDraft = {
  name: 'Demo: more than a tenth is blocked',
  metric: 'block_rate',
  operator: 'gt',
  threshold: 0.1,
  windowSeconds: DAY_SECONDS,
  minEvents: 20,
}
