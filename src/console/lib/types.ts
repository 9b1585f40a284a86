// What the server answers, from the schemas that describe its answers.

import type * as keys from '../../api/admin/docs.ts'
import type * as alert from '../../api/alerts/docs.ts'
import type * as analytics from '../../api/analytics/docs.ts'
import type * as event from '../../api/events/schema.ts'
import type * as list from '../../api/lists/docs.ts'
import type * as rule from '../../api/rules/schema.ts'
import type * as trial from '../../api/rules/trial-docs.ts'
import type * as visitor from '../../api/visitors/docs.ts'
import type * as erasure from '../../api/visitors/erasures-docs.ts'
import type * as delivery from '../../api/webhooks/deliveries-docs.ts'
import type * as webhook from '../../api/webhooks/docs.ts'
import type { Env } from '../../domain/event.ts'
import type { Role } from '../../domain/person.ts'
import type { ConditionGroup, RuleAction, SideEffect } from '../../domain/rule.ts'
import type { Static } from '../../domain/schema.ts'
import type { KeyScope, Plan } from '../../domain/workspace.ts'

export type Event = Static<typeof event.Event>
/** Of signals that were raised or could not be told. */
export type SignalDetail = NonNullable<Event['signalDetails']['bot']>
export type EventSummary = Static<typeof event.EventSummary>
export type Recognition = Static<typeof event.Recognition>
export type FoundVisitor = Static<typeof visitor.FoundVisitor>
export type Visitor = Static<typeof visitor.Visitor>
export type Erasure = Static<typeof erasure.Erasure>
export type ListedRule = Static<typeof rule.ListedRule>
export type RuleField = Static<typeof rule.RuleField>
export type WrittenRule = Static<typeof rule.UpdatedRule>
/** With conditions and action as the domain has them, which the schemas leave to the parser of rules. */
export type Rule = Omit<Static<typeof rule.Rule>, 'conditions' | 'action' | 'sideEffects'> & {
  readonly conditions: ConditionGroup
  readonly action: RuleAction
  readonly sideEffects: readonly SideEffect[]
}
export type RuleVersion = Omit<Static<typeof trial.RuleVersion>, 'rule'> & { readonly rule: Rule | null }
export type AuditEntry = Static<typeof trial.AuditEntry>
export type Simulation = Static<typeof trial.Simulation>
export type MonitorReport = Static<typeof trial.MonitorReport>
export type Backtest = Static<typeof trial.Backtest>
export type ListedList = Static<typeof list.ListedList>
export type ListWithUse = Static<typeof list.ListWithUse>
export type ListEntry = Static<typeof list.ListEntry>
export type EntriesChanged = Static<typeof list.EntriesChanged>
export type Webhook = Static<typeof webhook.Webhook>
export type ListedWebhook = Static<typeof webhook.ListedWebhook>
export type CreatedWebhook = Static<typeof webhook.CreatedWebhook>
export type RotatedSecret = Static<typeof webhook.RotatedSecret>
export type Delivery = Static<typeof delivery.Delivery>
export type DeliveryInFull = Static<typeof delivery.DeliveryInFull>
export type TestedDelivery = Static<typeof delivery.TestedDelivery>
export type Alert = Static<typeof alert.Alert>
export type Incident = Static<typeof alert.Incident>
export type EventCounts = Static<typeof analytics.EventCounts>
export type SignalCounts = Static<typeof analytics.SignalCounts>
export type Key = Static<typeof keys.Key>
export type NewKey = Static<typeof keys.NewKey>
export type Meta = Static<typeof keys.Meta>

/** A page read by cursor. */
export interface CursorPage<T> {
  readonly data: readonly T[]
  readonly hasMore: boolean
  readonly nextCursor: string | null
}
export interface OffsetPage<T> {
  readonly data: readonly T[]
  readonly total: number
}

/** Of the internal API, see docs/console-api.md. */
export interface Person {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: Role
  readonly totp: boolean
}
export interface SignedIn {
  readonly person: Person
  readonly session: { readonly id: string; readonly expiresAt: string }
  readonly csrf: string
  readonly scopes: readonly KeyScope[]
  readonly workspace: { readonly id: string; readonly name: string; readonly plan: Plan; readonly apiVersion: string }
  readonly serviceUrl: string
}
export interface Member extends Person {
  readonly status: 'active' | 'invited'
  readonly createdAt: string
  readonly lastSeenAt: string | null
}
export interface ListedSession {
  readonly id: string
  readonly createdAt: string
  readonly lastSeenAt: string
  readonly expiresAt: string
  readonly address: string
  readonly userAgent: string
  readonly current: boolean
}
export type { Env, KeyScope, Role }
