// Commands and outcomes of the control plane: what may stand in the `changes` topic, its encoding and its validation.

import { ApiError, type ErrorCode } from '../domain/errors.ts'
import { CHALLENGE_TYPES, ENVS, type Env, VERDICTS } from '../domain/event.ts'
import type { ConditionGroup, Rule, SideEffect } from '../domain/rule.ts'
import { CONDITION_DEPTH_MAX, OPERATORS, RULE_NAME_CHARS_MAX, RULE_STATUSES } from '../domain/rule.ts'
import { type Described, nullable, oneOf, type Static, strict, type TSchema, Type } from '../domain/schema.ts'
import type { Workspace } from '../domain/workspace.ts'
import { PLANS, SCOPES } from '../domain/workspace.ts'
import { pack, unpack } from '../lib/codec.ts'
import { validator } from '../lib/validate.ts'
import { ALERT_COMMANDS } from './alert-commands.ts'
import type { StoredAlert } from './alerts.ts'
import { byId, id, text, wholeNumber } from './command-schema.ts'
import { LIST_COMMANDS } from './list-commands.ts'
import type { StoredList } from './lists.ts'
import { PERSON_COMMANDS } from './person-commands.ts'
import { SYSTEM, tenantScope } from './scopes.ts'
import { VISITOR_COMMANDS } from './visitor-commands.ts'
import { WEBHOOK_COMMANDS } from './webhook-commands.ts'
import type { StoredWebhook } from './webhooks.ts'

/** A thousand entries of lists with long values and reasons fit. */
export const COMMAND_BYTES_MAX = 786_432

const literal = Type.Union([Type.String(), Type.Number(), Type.Boolean()])
const leaf = Type.Object(
  { field: text(512), operator: oneOf(OPERATORS), value: Type.Union([literal, Type.Array(literal)]) },
  strict,
)
function group(depth: number): TSchema {
  const item = depth === 1 ? leaf : Type.Union([leaf, group(depth - 1)])
  return Type.Object({ operator: oneOf(['AND', 'OR']), rules: Type.Array(item, { minItems: 1 }) }, strict)
}
const sideEffects = Type.Unsafe<readonly SideEffect[]>(Type.Array(Type.Object({ type: text(64) })))
const ruleFields = {
  name: Type.String({ minLength: 1, maxLength: RULE_NAME_CHARS_MAX }),
  conditions: Type.Unsafe<ConditionGroup>(group(CONDITION_DEPTH_MAX)),
  action: Type.Object(
    {
      verdict: oneOf(VERDICTS),
      challengeType: Type.Optional(oneOf(CHALLENGE_TYPES)),
      sideEffects: Type.Optional(sideEffects),
    },
    strict,
  ),
  status: oneOf(RULE_STATUSES),
}

/** Maxima travel in the command, so that a replay under other settings refuses exactly what was refused. */
const maxima = Type.Object(
  {
    rulesMax: wholeNumber,
    activeMax: wholeNumber,
    /** Absent in commands of earlier releases, which knew none. */
    bytesMax: Type.Optional(wholeNumber),
  },
  strict,
)
export type RuleMaxima = Described<typeof maxima>

/** An action replaces verdict and challenge type; side effects stay when it has none. */
const RuleChanges = Type.Partial(Type.Object({ ...ruleFields, sideEffects, priority: Type.Integer() }), strict)
export type RuleCommandChanges = Described<typeof RuleChanges>

const limit = Type.Optional(nullable(wholeNumber))
const days = Type.Optional(Type.Integer({ minimum: 1 }))
const settings = {
  clientResult: oneOf(['id', 'verdict']),
  scoreWeights: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.Number({ minimum: 0, maximum: 1 }))),
  limits: Type.Optional(
    nullable(Type.Object({ serverPerMinute: limit, mgmtPerMinute: limit, burstPerSecond: limit }, strict)),
  ),
  retention: Type.Optional(Type.Object({ eventsDays: days, fullIpDays: days }, strict)),
}
const workspaceFields = { name: text(200), plan: oneOf(PLANS), apiVersion: text(32) }

/** A key without what the command itself says (workspace, environment, time) and without a fate. */
const KeyToMake = Type.Object(
  {
    id,
    kind: oneOf(['public', 'secret']),
    digest: Type.String({ pattern: '^[0-9a-f]{64}$', maxLength: 64 }),
    last4: text(4),
    label: nullable(text(200)),
    scopes: nullable(Type.Array(oneOf(SCOPES))),
    origins: nullable(Type.Array(text(300))),
    expiresAt: nullable(wholeNumber),
  },
  strict,
)
export type KeyToMake = Described<typeof KeyToMake>
const newKey = Type.Object({ key: KeyToMake, keysMax: wholeNumber }, strict)

const DATA = {
  'workspace.create': Type.Object(
    { ...workspaceFields, settings: Type.Object(settings, strict), tokenSecret: text(512) },
    strict,
  ),
  /** `isLost`: the secret before cannot be opened any more. */
  'workspace.token': Type.Object({ tokenSecret: text(512), isLost: Type.Boolean() }, strict),
  'workspace.update': Type.Partial(
    Type.Object({ ...workspaceFields, settings: Type.Partial(Type.Object(settings, strict), strict) }),
    strict,
  ),
  'key.create': newKey,
  'key.revoke': byId,
  /** Adds the key and revokes all others of its kind and environment. */
  'key.rotate': newKey,
  /** A priority of null is the highest one plus 10. */
  'rule.create': Type.Object({ id, ...ruleFields, priority: nullable(Type.Integer()), maxima }, strict),
  'rule.update': Type.Object({ id, changes: RuleChanges, maxima }, strict),
  'rule.delete': byId,
  /** `version`: one that the rule had. */
  'rule.rollback': Type.Object({ id, version: wholeNumber, maxima }, strict),
  ...LIST_COMMANDS,
  ...VISITOR_COMMANDS,
  ...WEBHOOK_COMMANDS,
  ...ALERT_COMMANDS,
  ...PERSON_COMMANDS,
}

/** What a command of each type says: as its schema has it. */
export type CommandData = { readonly [T in keyof typeof DATA]: Described<(typeof DATA)[T]> }
export type CommandType = keyof CommandData

export type Command = {
  [T in CommandType]: {
    readonly id: string
    /** Milliseconds since the epoch, by the clock of whoever appended it. */
    readonly at: number
    readonly actor: string
    readonly workspace: string
    /** null for commands about the workspace itself or a key by its id. */
    readonly env: Env | null
    readonly type: T
    readonly data: CommandData[T]
    /** Optimistic lock: the version the object must have. */
    readonly expectVersion?: number
  }
}[CommandType]

type Draft<C> = C extends Command ? Omit<C, 'id' | 'at'> : never
/** A command before it has an id and a time. */
export type CommandDraft = Draft<Command>

/** The part of a rule that an answer to a write shows. */
export type RuleHead = Pick<Rule, 'id' | 'name' | 'status' | 'priority' | 'createdAt' | 'updatedAt'> & {
  readonly version: number
}

/** A webhook without its secrets. */
export type WebhookHead = Omit<StoredWebhook, 'secrets'>

/**
 * Entries that were not there before, entries that were, and what was skipped: visitors that were erased and, of side effects of rules,
 * what no list could take.
 */
export interface EntriesOutcome {
  readonly added: number
  readonly removed: number
  readonly skipped: number
}

export type CommandOutcome =
  | {
      readonly ok: true
      readonly seq: number
      /** The command's time: creation or change of what it wrote. */
      readonly at: number
      readonly rule?: RuleHead
      /** The ruleset revision this command made. */
      readonly revision?: number
      readonly workspace?: Omit<Workspace, 'tokenSecret'>
      /** Ids of the keys a rotation ended. */
      readonly revoked?: readonly string[]
      readonly list?: StoredList
      readonly entries?: EntriesOutcome
      /** The new visitor of a split. */
      readonly split?: { readonly visitorId: string; readonly moved: number }
      readonly webhook?: WebhookHead
      readonly alert?: StoredAlert
    }
  | {
      readonly ok: false
      readonly seq: number
      readonly code: ErrorCode
      readonly message?: string
      readonly field?: string
    }

const COMMAND = Type.Object(
  {
    id: Type.String({ pattern: '^cmd_[0-9A-Z]{26}$', maxLength: 30 }),
    at: wholeNumber,
    actor: text(200),
    workspace: id,
    env: nullable(oneOf(ENVS)),
    type: oneOf(Object.keys(DATA)),
    data: Type.Object({}),
    expectVersion: Type.Optional(wholeNumber),
  },
  strict,
)
type Envelope = Static<typeof COMMAND>

const checkEnvelope: (data: unknown) => asserts data is Envelope = validator(COMMAND)
const checkData = new Map(Object.entries(DATA).map(([type, schema]) => [type, validator(schema)]))
const NEEDS_ENV: ReadonlySet<string> = new Set([
  'key.create',
  'key.rotate',
  'rule.create',
  'rule.update',
  'rule.delete',
  'rule.rollback',
  ...Object.keys(LIST_COMMANDS),
  ...Object.keys(VISITOR_COMMANDS),
  ...Object.keys(WEBHOOK_COMMANDS),
  ...Object.keys(ALERT_COMMANDS),
])

export const encodeCommand = (command: Command): Uint8Array => pack(command)

/** The command, or a sentence saying what is wrong with the bytes. */
export function decodeCommand(bytes: Uint8Array): Command | string {
  if (bytes.length > COMMAND_BYTES_MAX) return `longer than ${COMMAND_BYTES_MAX} bytes`
  const value = unpack(bytes)
  try {
    checkEnvelope(value)
    const check: ((data: unknown) => void) | undefined = checkData.get(value.type)
    check?.(value.data)
    if (value.env === null && NEEDS_ENV.has(value.type)) return 'env: missing'
    return value as unknown as Command
  } catch (error) {
    if (error instanceof ApiError) return `${error.detail.field}: ${error.message}`
    throw error
  }
}

/** The scope that says whether a command was applied: its outcome lies there. */
export function homeScope(command: Pick<Command, 'type' | 'workspace' | 'env'>): string {
  const ofTenant = /^(rule|list|visitor|webhook|alert)\./.test(command.type) && command.env !== null
  return ofTenant ? tenantScope(command.workspace, command.env) : SYSTEM
}

export const COMMAND_OUTCOME = 'outcome'
export const OUTCOME_TTL_MS = 600_000
