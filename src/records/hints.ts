// Every subject that configuration and its readers exchange over the bus, with the shape of its messages.

import type { Bus, Unsubscribe } from '../bus/bus.ts'
import type { Env } from '../domain/event.ts'
import type { EventType, WebhookStatus } from '../domain/webhook.ts'
import type { CommandOutcome } from './commands.ts'
import type { Payload } from './deliveries.ts'

export interface Hints {
  /** A ruleset has a new revision; evaluators load it. */
  readonly 'ruleset.revision': { readonly workspace: string; readonly env: Env; readonly revision: number }
  /** An evaluator decides by this revision from now on. */
  readonly 'ruleset.confirmed': {
    readonly evaluator: string
    readonly workspace: string
    readonly env: Env
    readonly revision: number
  }
  /** The lists of an environment have a new delta; those who follow read it. */
  readonly 'lists.changed': { readonly workspace: string; readonly env: Env; readonly seq: number }
  /** A webhook changed, or is gone; who delivers to it looks again, and stops at once where it may not. */
  readonly 'webhooks.changed': {
    readonly workspace: string
    readonly env: Env
    readonly id: string
    readonly status: WebhookStatus | 'gone'
  }
  /** Something is due at a webhook of this shard of deliveries. */
  readonly 'deliveries.due': { readonly shard: number; readonly webhookIds: readonly string[] }
  /** Somebody listens to what happens in an environment. */
  readonly 'webhooks.listening': { readonly workspace: string; readonly env: Env }
  /** What happened, for those who listen. */
  readonly 'webhooks.heard': {
    readonly workspace: string
    readonly env: Env
    readonly eventId: string
    readonly type: EventType
    readonly payload: Payload
  }
  /** A command has been applied or refused, and its effects can be read. */
  readonly 'control.applied': { readonly commandId: string; readonly outcome: CommandOutcome }
  /** A key or a workspace changed; directories reload. */
  readonly 'keys.changed': Readonly<Record<string, never>>
  /** A process gave names back or left; those of its group look again. */
  readonly 'leases.changed': { readonly group: string }
}

export function publishHint<S extends keyof Hints>(bus: Bus, subject: S, message: Hints[S]): void {
  bus.publish(subject, message)
}

export function onHint<S extends keyof Hints>(bus: Bus, subject: S, receive: (message: Hints[S]) => void): Unsubscribe {
  return bus.subscribe(subject, (message) => receive(message as Hints[S]))
}
