// What a webhook can be told of, in words.

import type { EventType } from '../../../domain/webhook.ts'

export const EVENT_TYPE_WORDS: readonly (readonly [EventType, string])[] = [
  ['identification.complete', 'every identification'],
  ['verdict.block', 'a visitor is blocked'],
  ['verdict.challenge', 'a visitor is challenged'],
  ['verdict.allow', 'a visitor is allowed'],
  ['rule.matched', 'a rule matches'],
  ['visitor.new', 'a visitor is new'],
  ['visitor.returning', 'a visitor comes back'],
  ['visitor.merged', 'two visitors turn out to be one'],
  ['signal.bot.detected', 'a bot is detected'],
  ['list.entry.added', 'an entry is added to a list'],
  ['list.entry.expired', 'an entry of a list expires'],
  ['alert.triggered', 'an alert is triggered'],
]
