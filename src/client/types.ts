// What the client takes and gives, from the schemas that validate requests and describe answers.

import type * as admin from '../api/admin/docs.ts'
import type * as alert from '../api/alerts/docs.ts'
import type * as analytics from '../api/analytics/docs.ts'
import type * as event from '../api/events/schema.ts'
import type * as list from '../api/lists/docs.ts'
import type * as rule from '../api/rules/schema.ts'
import type * as trial from '../api/rules/trial-docs.ts'
import type * as visitor from '../api/visitors/docs.ts'
import type * as erasure from '../api/visitors/erasures-docs.ts'
import type * as delivery from '../api/webhooks/deliveries-docs.ts'
import type * as webhook from '../api/webhooks/docs.ts'
import type { IdentifySchema } from '../domain/identify.ts'
import type { Static, TSchema } from '../domain/schema.ts'

/** Answers may get further members; those that are named keep their types. */
type Of<T extends TSchema> = Static<T>

export type IdentifyRequest = Of<typeof IdentifySchema>
export type Event = Of<typeof event.Event>
export type IdentifiedEvent = Of<typeof event.IdentifiedEvent>
export type EventSummary = Of<typeof event.EventSummary>
export type Labelling = Of<typeof event.Labelling>
export type VisitorEvent = Of<typeof event.VisitorEvent>
export type Recognition = Of<typeof event.Recognition>
export type Visitor = Of<typeof visitor.Visitor>
export type FoundVisitor = Of<typeof visitor.FoundVisitor>
export type DeletedVisitor = Of<typeof visitor.DeletedVisitor>
export type SplitVisitor = Of<typeof visitor.SplitVisitor>
export type VisitorExport = Of<typeof erasure.VisitorExport>
export type Erasure = Of<typeof erasure.Erasure>
export type Conditions = Of<typeof rule.Conditions>
export type Action = Of<typeof rule.Action>
export type Rule = Of<typeof rule.Rule>
export type RuleField = Of<typeof rule.RuleField>
export type ListedRule = Of<typeof rule.ListedRule>
export type CreatedRule = Of<typeof rule.CreatedRule>
export type UpdatedRule = Of<typeof rule.UpdatedRule>
export type RuleVersion = Of<typeof trial.RuleVersion>
export type AuditEntry = Of<typeof trial.AuditEntry>
export type Simulation = Of<typeof trial.Simulation>
export type MonitorReport = Of<typeof trial.MonitorReport>
export type Backtest = Of<typeof trial.Backtest>
export type List = Of<typeof list.List>
export type ListWithUse = Of<typeof list.ListWithUse>
export type ListedList = Of<typeof list.ListedList>
export type ListEntry = Of<typeof list.ListEntry>
export type EntriesChanged = Of<typeof list.EntriesChanged>
export type EntriesChecked = Of<typeof list.EntriesChecked>
export type Webhook = Of<typeof webhook.Webhook>
export type ListedWebhook = Of<typeof webhook.ListedWebhook>
export type CreatedWebhook = Of<typeof webhook.CreatedWebhook>
export type ChangedWebhook = Of<typeof webhook.ChangedWebhook>
export type RotatedSecret = Of<typeof webhook.RotatedSecret>
export type Delivery = Of<typeof delivery.Delivery>
export type DeliveryInFull = Of<typeof delivery.DeliveryInFull>
export type TestedDelivery = Of<typeof delivery.TestedDelivery>
export type Queued = Of<typeof delivery.Queued>
export type Alert = Of<typeof alert.Alert>
export type Incident = Of<typeof alert.Incident>
export type EventCounts = Of<typeof analytics.EventCounts>
export type SignalCounts = Of<typeof analytics.SignalCounts>
export type Key = Of<typeof admin.Key>
export type NewKey = Of<typeof admin.NewKey>
export type RotatedKey = Of<typeof admin.RotatedKey>
export type Meta = Of<typeof admin.Meta>

/** A moment: ISO 8601 with an offset or `Z`, or a Date. */
export type Moment = string | Date

export interface EventFilter {
  readonly visitorId?: string
  /** Of new visitors that may be this one. */
  readonly possibleVisitorId?: string
  readonly before?: Moment
  readonly after?: Moment
  readonly verdict?: 'allow' | 'challenge' | 'block'
  readonly bot?: boolean
  readonly linkedId?: string
  readonly country?: string
  readonly platform?: string
  readonly ruleId?: string
  readonly signal?: string
  readonly keyKind?: 'public' | 'secret'
  /** An address or a range, `203.0.113.0/24`. */
  readonly ip?: string
  readonly asn?: number
  readonly email?: string
  readonly urlHost?: string
  readonly label?: 'fraud' | 'legitimate' | 'none'
  readonly deviceType?: Event['device']['type']
  /** A family, or a family and its major version: `Chrome`, `Chrome 147`. */
  readonly browser?: string
  readonly method?: Event['identity']['method']
  /** Inclusive; scores need plan Pro. */
  readonly suspectMin?: number
  readonly suspectMax?: number
  readonly confidenceMin?: number
  readonly confidenceMax?: number
  /** The text of a value of the tag. */
  readonly [tag: `tag.${string}`]: string
}
export interface TimeFilter {
  readonly before?: Moment
  readonly after?: Moment
}
/** At least one of them. */
export interface VisitorFilter {
  readonly linkedId?: string
  readonly email?: string
  /** An address or a range. */
  readonly ip?: string
  /** The name or id of a list. */
  readonly list?: string
  /** What the id, the account or the email begins with. */
  readonly q?: string
}
/** Events by their ids, at most 1,000, or all of a visitor. */
export type LabelledEvents = { readonly requestIds: readonly string[] } | { readonly visitorId: string }
export interface EventChanges {
  /** null: there is none. */
  readonly linkedId?: string | null
  readonly tag?: object | null
  readonly label?: 'fraud' | 'legitimate' | null
}
/** Without `scopes` it may all that its kind may, but for keys; without `origins` it works on any page. */
export interface KeyDraft {
  readonly kind: Key['kind']
  readonly label?: string
  readonly scopes?: NonNullable<Key['scopes']>
  readonly origins?: readonly string[]
  readonly expiresAt?: Moment
}
export interface RevokedKey {
  readonly deleted: true
  readonly keyId: string
}
/** Names without a dot, `filters` and `secret` make form A; dotted names, `description` and `enabled` form B. */
export interface WebhookDraft {
  readonly url: string
  readonly events?: readonly string[]
  readonly filters?: Webhook['filters']
  readonly secret?: string
  readonly description?: string | null
  readonly enabled?: boolean
}
export type WebhookChanges = Partial<Omit<WebhookDraft, 'secret'>> & { readonly status?: 'active' | 'paused' }
export interface DeliveryFilter extends TimeFilter {
  readonly status?: Delivery['status']
  readonly eventType?: string
}
export type AlertDraft = Pick<Alert, 'name' | 'metric' | 'operator' | 'threshold'> &
  Partial<Pick<Alert, 'filters' | 'windowSeconds' | 'minEvents' | 'cooldownSeconds' | 'status'>>
export interface RuleDraft {
  readonly name: string
  readonly conditions: Conditions
  readonly action: Action
  readonly priority?: number
  readonly status?: 'live' | 'monitor' | 'draft'
}
export type RuleChanges = Partial<Omit<RuleDraft, 'status'>> & {
  readonly status?: 'live' | 'monitor' | 'paused' | 'draft'
}
export interface ListDraft {
  readonly name: string
  readonly type: 'visitor' | 'ip' | 'email'
  readonly description?: string | null
  readonly ttl?: number | null
}
export interface NewListEntry {
  readonly value: string
  readonly ttl?: number | null
  readonly reason?: string
}
export interface EntryChanges {
  readonly add?: readonly (string | NewListEntry)[]
  readonly remove?: readonly string[]
}
export interface Range {
  readonly from: Moment
  readonly to: Moment
}
export interface CursorPage<T> {
  readonly data: readonly T[]
  readonly hasMore: boolean
  readonly nextCursor: string | null
}
export interface OffsetPage<T> {
  readonly data: readonly T[]
  readonly total: number
}
