// What a command changes: records, hints for followers, orders for owners of partitions, or a refusal.

import type { ErrorCode } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import type { WebhookStatus } from '../domain/webhook.ts'
import type { Kv, KvKey, Put, Scope } from '../kv/kv.ts'
import type { AuditDraft } from '../records/audit.ts'
import type { Command, CommandOutcome } from '../records/commands.ts'

export type Read = Pick<Kv, 'get' | 'scan'>
export type CommandOf<T extends Command['type']> = Extract<Command, { readonly type: T }>

export interface Effect {
  readonly scope: Scope
  readonly put?: readonly Put[]
  readonly drop?: readonly KvKey[]
}

/** What a command asks of the owner of a partition: a record for `identifications`. */
export interface Order {
  readonly partition: number
  readonly bytes: Uint8Array
}

/** What a command changes, before its outcome is added. */
export interface Change {
  readonly outcome: CommandOutcome
  /** At most one per scope. */
  readonly effects: readonly Effect[]
  readonly keysChanged?: boolean
  readonly rulesets?: readonly { readonly workspace: string; readonly env: Env }[]
  /** What the audit log keeps of it. */
  readonly audit?: AuditDraft
  /** Whose log keeps it; default: that of the command's environment. */
  readonly auditEnvs?: readonly Env[]
  /** Environments whose lists have a new delta. */
  readonly lists?: readonly { readonly workspace: string; readonly env: Env }[]
  readonly webhooks?: readonly WebhookChange[]
  /** Appended before anything is committed, so that none is lost; the same one may come twice. */
  readonly orders?: readonly Order[]
  /**
   * Keys that no later command writes again, so they may go before what the effects change, and by whichever owner: more of them than
   * one commit takes.
   */
  readonly early?: { readonly scope: Scope; readonly drop: readonly KvKey[] }
}

/** What became of a webhook. */
export interface WebhookChange {
  readonly workspace: string
  readonly env: Env
  readonly id: string
  readonly status: WebhookStatus | 'gone'
}

export const refuse = (seq: number, code: ErrorCode, message?: string, field?: string): Change => ({
  outcome: {
    ok: false,
    seq,
    code,
    ...(message === undefined ? {} : { message }),
    ...(field === undefined ? {} : { field }),
  },
  effects: [],
})
