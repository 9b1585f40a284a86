// Rules to start from.

import type { RuleText } from './draft.ts'

export interface Template {
  readonly about: string
  readonly rule: RuleText
}

export const TEMPLATES: readonly Template[] = [
  {
    about: 'Browsers that are driven by a program.',
    rule: {
      name: 'Block bots',
      conditions: { operator: 'AND', rules: [{ field: 'signals.bot.detected', operator: 'equals', value: true }] },
      action: { verdict: 'block' },
    },
  },
  {
    about: 'Somebody who hides where they are and who they are.',
    rule: {
      name: 'Challenge VPN in private mode',
      conditions: {
        operator: 'AND',
        rules: [
          { field: 'signals.vpn.detected', operator: 'equals', value: true },
          { field: 'signals.incognito', operator: 'equals', value: true },
        ],
      },
      action: { verdict: 'challenge', challengeType: 'captcha' },
    },
  },
  {
    about: 'One device with many accounts within a day.',
    rule: {
      name: 'Challenge devices with many accounts',
      conditions: {
        operator: 'AND',
        rules: [{ field: 'velocity.visitor.linkedIds.24h', operator: 'gt', value: 3 }],
      },
      action: { verdict: 'challenge', challengeType: 'otp' },
    },
  },
]
