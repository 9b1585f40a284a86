// Side effects as a client sent them → checked ones, each type with its own members.

import { invalid } from '../domain/errors.ts'
import { type ListType, REASON_CHARS_MAX, TTL_SECONDS_MAX } from '../domain/list.ts'
import type { AddToListEffect, LogEffect, RemoveFromListEffect, SideEffect } from '../domain/rule.ts'
import { readTarget } from '../domain/webhook-url.ts'
import { allowedField, boundedText, members, type ParseContext } from './parse.ts'
import { templatePaths } from './template.ts'

export const SIDE_EFFECTS_MAX = 10
export const MESSAGE_CHARS_MAX = 1_024
const URL_CHARS_MAX = 1_024
const LOG_LEVELS: readonly NonNullable<LogEffect['level']>[] = ['info', 'warn', 'error']
const WEBHOOK_ID = /^(?:whk|wh)_[0-9A-Za-z]{1,64}$/
/** What is shown instead of the secret part of an address, and what no address may hold. */
const MASK = '****'

/** The field an entry is taken from where the effect names none. */
const DEFAULT_FIELDS: Readonly<Record<ListType, string>> = { visitor: 'visitorId', ip: 'ip', email: 'email' }

type Got = ReadonlyMap<string, unknown>
interface Kind {
  readonly members: readonly string[]
  readonly parse: (got: Got, at: string, context: ParseContext) => SideEffect
}

const KINDS: Readonly<Record<SideEffect['type'], Kind>> = {
  addToList: { members: ['list', 'value', 'ttl', 'reason', 'verifiedOnly'], parse: parseAddToList },
  removeFromList: {
    members: ['list', 'value'],
    parse: (...args) => ({ type: 'removeFromList', ...listPart(...args) }),
  },
  webhook: { members: ['webhookId'], parse: parseWebhook },
  slack: { members: ['url', 'message'], parse: parseSlack },
  log: { members: ['level', 'message'], parse: parseLog },
}

/** Throws ApiError validation_error, or plan_required for a template with a score below Pro. */
export function parseSideEffects(input: unknown, at: string, context: ParseContext): SideEffect[] {
  if (!Array.isArray(input)) throw invalid(at, 'Must be an array.')
  if (input.length > SIDE_EFFECTS_MAX) throw invalid(at, `Must have at most ${SIDE_EFFECTS_MAX} items.`)
  return input.map((effect, i) => parseOne(effect, `${at}[${i}]`, context))
}

function parseOne(input: unknown, at: string, context: ParseContext): SideEffect {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw invalid(at, 'Must be an object.')
  // The type decides which other members are known, so it is looked at first.
  const type: unknown = Object.hasOwn(input, 'type') ? (input as { type: unknown }).type : undefined
  const kind = typeof type === 'string' && Object.hasOwn(KINDS, type) ? KINDS[type as SideEffect['type']] : undefined
  if (kind === undefined) throw invalid(`${at}.type`, `Must be one of: ${Object.keys(KINDS).join(', ')}.`)
  return kind.parse(members(input, at, ['type', ...kind.members]), at, context)
}

type ListPart = Omit<RemoveFromListEffect, 'type'>

function listPart(got: Got, at: string, { plan, lists }: ParseContext): ListPart {
  const name = got.get('list')
  if (typeof name !== 'string') throw invalid(`${at}.list`, 'Must be the name of a list.')
  const list = name.length <= 64 ? lists(name) : null
  if (list === null) throw invalid(`${at}.list`, 'No list of this name.')
  const path = got.get('value') ?? DEFAULT_FIELDS[list.type]
  if (typeof path !== 'string') throw invalid(`${at}.value`, 'Must be the path of a field.')
  const suits = allowedField(path, plan, `${at}.value`).list
  if (suits !== 'any' && suits !== list.type) {
    throw invalid(`${at}.value`, `This field does not suit a list of type ${list.type}.`)
  }
  return { list: name, value: path }
}

function parseAddToList(got: Got, at: string, context: ParseContext): AddToListEffect {
  const part = listPart(got, at, context)
  const ttl = got.get('ttl')
  const seconds = typeof ttl === 'number' && Number.isInteger(ttl) && ttl >= 1 && ttl <= TTL_SECONDS_MAX ? ttl : null
  if (ttl !== undefined && ttl !== null && seconds === null) {
    throw invalid(`${at}.ttl`, `Must be null or a whole number of seconds from 1 to ${TTL_SECONDS_MAX}.`)
  }
  const reason = got.get('reason')
  const verifiedOnly = got.get('verifiedOnly')
  if (verifiedOnly !== undefined && typeof verifiedOnly !== 'boolean') {
    throw invalid(`${at}.verifiedOnly`, 'Must be true or false.')
  }
  return {
    type: 'addToList',
    ...part,
    ...(ttl === undefined ? {} : { ttl: seconds }),
    ...(reason === undefined ? {} : { reason: boundedText(reason, `${at}.reason`, REASON_CHARS_MAX) }),
    ...(verifiedOnly === undefined ? {} : { verifiedOnly }),
  }
}

function parseWebhook(got: Got, at: string, { webhooks }: ParseContext): SideEffect {
  const webhookId = got.get('webhookId')
  if (typeof webhookId !== 'string' || !WEBHOOK_ID.test(webhookId)) {
    throw invalid(`${at}.webhookId`, 'Must be the id of a webhook.')
  }
  if (webhooks?.(webhookId) === false) throw invalid(`${at}.webhookId`, 'No such webhook.')
  return { type: 'webhook', webhookId }
}

function parseSlack(got: Got, at: string, context: ParseContext): SideEffect {
  const url = boundedText(got.get('url'), `${at}.url`, URL_CHARS_MAX)
  if (url.includes(MASK)) throw invalid(`${at}.url`, 'The address is shown masked; send it whole.')
  if (!isHookUrl(url)) throw invalid(`${at}.url`, 'Must be the https address of an incoming webhook.')
  return { type: 'slack', url, ...messagePart(got, at, context) }
}

/** Where it may lead is checked again when it is called. */
function isHookUrl(text: string): boolean {
  const target = readTarget(text)
  return typeof target !== 'string' && target.kind === 'public'
}

function parseLog(got: Got, at: string, context: ParseContext): LogEffect {
  const level = got.has('level') ? got.get('level') : 'info'
  if (!LOG_LEVELS.includes(level as NonNullable<LogEffect['level']>)) {
    throw invalid(`${at}.level`, `Must be one of: ${LOG_LEVELS.join(', ')}.`)
  }
  return { type: 'log', level: level as NonNullable<LogEffect['level']>, ...messagePart(got, at, context) }
}

function messagePart(got: Got, at: string, { plan }: ParseContext): { readonly message?: string } {
  if (!got.has('message')) return {}
  const message = boundedText(got.get('message'), `${at}.message`, MESSAGE_CHARS_MAX)
  for (const path of templatePaths(message)) allowedField(path, plan, `${at}.message`)
  return { message }
}

/** The effect as it may be shown: of an address that is a secret only where it leads. */
export function maskSideEffect(effect: SideEffect): SideEffect {
  return effect.type === 'slack' ? { ...effect, url: `https://${new URL(effect.url).host}/${MASK}` } : effect
}
