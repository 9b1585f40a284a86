// The client for Node: every endpoint of the server-side API as a function, collections as async iterators.

import { type CallOptions, type ClientOptions, openCall, openDownload, queryText } from './call.ts'
import { HEARD, type HeardEvent, type ListenOptions, listenTo } from './listen.ts'
import type * as api from './types.ts'

export { type ClientOptions, FingerpostError } from './call.ts'
export type { HeardEvent, ListenOptions } from './listen.ts'
export type * from './types.ts'

const PAGE = 100
type Query = NonNullable<CallOptions['query']>
/** `idempotencyKey` makes a write one that may be tried again. */
type Write = Pick<CallOptions, 'idempotencyKey'>
type Guarded = Pick<CallOptions, 'ifMatch'>

export type Fingerpost = ReturnType<typeof openFingerpost>

/**
 * Every function fails with FingerpostError. Reads, and writes that carry an idempotency key or a nonce, are tried again after
 * 429, 5xx and lost connections, as the service asks by Retry-After.
 */
export function openFingerpost(options: ClientOptions) {
  const call = openCall(options)
  const download = openDownload(options)
  const of = async <T>(method: string, path: string, more: CallOptions = {}): Promise<T> =>
    (await call<T>(method, path, more)).body
  const get = <T>(path: string, query: object = {}): Promise<T> => of<T>('GET', path, { query: query as Query })
  const id = encodeURIComponent

  /** Every item of a collection with cursors, a page at a time. */
  async function* byCursor<T>(path: string, filter: object): AsyncGenerator<T, void, undefined> {
    for (let cursor: string | undefined; ; ) {
      const page = await get<api.CursorPage<T>>(path, { limit: PAGE, ...filter, cursor })
      yield* page.data
      if (!page.hasMore || page.nextCursor === null) return
      cursor = page.nextCursor
    }
  }

  /** Every item of a collection with offsets. What is added or deleted meanwhile may be missed or come twice. */
  async function* byOffset<T>(path: string, filter: object): AsyncGenerator<T, void, undefined> {
    for (let offset = 0; ; offset += PAGE) {
      const page = await get<api.OffsetPage<T>>(path, { limit: PAGE, ...filter, offset })
      yield* page.data
      if (page.data.length < PAGE || offset + PAGE >= page.total) return
    }
  }

  return {
    /** Any endpoint, also one that this client has no function for. Ids in `path` must be encoded. */
    call,

    /** With a `nonce` the call may be tried again, and makes one event. */
    identify: (body: api.IdentifyRequest) =>
      of<api.IdentifiedEvent>('POST', '/v1/identify', { body, mayRepeat: body.nonce !== undefined }),

    events: {
      /** Waits for an event that is not decided yet. */
      get: (requestId: string) => get<api.Event>(`/v1/events/${id(requestId)}`),
      /** A label, another account or another tag. */
      change: (requestId: string, changes: api.EventChanges) =>
        of<api.Event>('PATCH', `/v1/events/${id(requestId)}`, { body: changes }),
      /** Ids that name nothing are counted. While `status` is `running` the same call again tells how far it has come. */
      label: (label: api.Labelling['label'], events: api.LabelledEvents, write: Write = {}) =>
        of<api.Labelling>('POST', '/v1/events/labels', { body: { label, ...events }, mayRepeat: true, ...write }),
      /** A CSV file of all that meet the filter, up to 100,000, as it arrives. */
      csv: (filter: api.EventFilter = {}): Promise<ReadableStream<Uint8Array>> =>
        download('/v1/events', 'text/csv', filter as Query),
      /**
       * Events as they are decided, at most fifty in a second: at most once, over lost connections, until the loop is left. `onSkipped` is
       * told how many came beyond.
       */
      watch: (
        filter: api.EventFilter = {},
        { onSkipped, ...listening }: ListenOptions & { readonly onSkipped?: (count: number) => void } = {},
      ): AsyncGenerator<api.Event, void, undefined> => {
        const path = `/v1/events/stream${queryText(filter as Query)}`
        const read = (name: string, data: string): api.Event | undefined => {
          if (name === 'skipped') onSkipped?.((JSON.parse(data) as { count: number }).count)
          return name === 'event' ? (JSON.parse(data) as api.Event) : undefined
        }
        return listenTo(options, { path, read }, listening)
      },
      explain: (requestId: string) => get<api.Recognition>(`/v1/events/${id(requestId)}/identity`),
      page: (filter: api.EventFilter & { readonly limit?: number; readonly cursor?: string } = {}) =>
        get<api.CursorPage<api.EventSummary>>('/v1/events', filter),
      /** Newest first. */
      all: (filter: api.EventFilter = {}) => byCursor<api.EventSummary>('/v1/events', filter),
      /** The same as whole events. */
      wholePage: (filter: api.EventFilter & { readonly limit?: number; readonly cursor?: string } = {}) =>
        get<api.CursorPage<api.Event>>('/v1/events', { ...filter, fields: 'full' }),
      allWhole: (filter: api.EventFilter = {}) => byCursor<api.Event>('/v1/events', { ...filter, fields: 'full' }),
    },

    visitors: {
      get: (visitorId: string) => get<api.Visitor>(`/v1/visitors/${id(visitorId)}`),
      /** By the newest event that meets the filter, newest first. */
      search: (filter: api.VisitorFilter) => byCursor<api.FoundVisitor>('/v1/visitors', filter),
      /** Newest first. */
      events: (visitorId: string, filter: api.TimeFilter = {}) =>
        byCursor<api.VisitorEvent>(`/v1/visitors/${id(visitorId)}/events`, filter),
      /** The first one survives. */
      merge: (visitorId: string, other: string) =>
        of<api.Visitor>('POST', `/v1/visitors/${id(visitorId)}/merge`, { body: { visitorId: other } }),
      /** The events become another visitor's. */
      split: (visitorId: string, requestIds: readonly string[]) =>
        of<api.SplitVisitor>('POST', `/v1/visitors/${id(visitorId)}/split`, { body: { requestIds } }),
      /** All that is held, with the first page of events; with a cursor, the next events. `masked`: as everywhere else. */
      export: (visitorId: string, cursor?: string, masked = false) =>
        get<api.VisitorExport>(`/v1/visitors/${id(visitorId)}/export`, { cursor, ...(masked ? { masked } : {}) }),
      /** How far a deletion has come. */
      erasure: (erasureId: string) => get<api.Erasure>(`/v1/erasures/${id(erasureId)}`),
      /** Irreversible. */
      delete: (visitorId: string) => of<api.DeletedVisitor>('DELETE', `/v1/visitors/${id(visitorId)}`),
    },

    rules: {
      create: (rule: api.RuleDraft, write: Write = {}) =>
        of<api.CreatedRule>('POST', '/v1/rules', { body: rule, ...write }),
      all: (filter: { readonly status?: api.ListedRule['status'] } = {}) =>
        byOffset<api.ListedRule>('/v1/rules', filter),
      get: (ruleId: string) => get<api.Rule>(`/v1/rules/${id(ruleId)}`),
      /** With its ETag, for `ifMatch`. */
      async getVersioned(ruleId: string): Promise<{ readonly rule: api.Rule; readonly etag: string }> {
        const { body, headers } = await call<api.Rule>('GET', `/v1/rules/${id(ruleId)}`)
        return { rule: body, etag: headers.get('etag') ?? '*' }
      },
      update: (ruleId: string, changes: api.RuleChanges, guard: Guarded = {}) =>
        of<api.UpdatedRule>('PUT', `/v1/rules/${id(ruleId)}`, { body: changes, ...guard }),
      delete: (ruleId: string, guard: Guarded = {}) =>
        of<{ deleted: true; ruleId: string }>('DELETE', `/v1/rules/${id(ruleId)}`, guard),
      versions: (ruleId: string) => byCursor<api.RuleVersion>(`/v1/rules/${id(ruleId)}/versions`, {}),
      rollBack: (ruleId: string, version: number, guard: Guarded = {}) =>
        of<api.UpdatedRule>('POST', `/v1/rules/${id(ruleId)}/rollback`, { body: { version }, ...guard }),
      monitor: (ruleId: string, days = 7) => get<api.MonitorReport>(`/v1/rules/${id(ruleId)}/monitor`, { days }),
      backtest: (ruleId: string, range: { readonly days?: number; readonly sampleSize?: number } = {}) =>
        of<api.Backtest>('POST', `/v1/rules/${id(ruleId)}/backtest`, { body: range, mayRepeat: true }),
      backtestConditions: (question: {
        readonly conditions: api.Conditions
        readonly action?: api.Action
        readonly days?: number
        readonly sampleSize?: number
      }) => of<api.Backtest>('POST', '/v1/rules/backtest', { body: question, mayRepeat: true }),
      /** What conditions may be about, and which operators that takes. */
      fields: async () => (await get<api.OffsetPage<api.RuleField>>('/v1/rules/fields')).data,
      simulate: (question: {
        readonly requestId?: string
        readonly event?: object
        readonly conditions?: api.Conditions
        readonly ruleId?: string
      }) => of<api.Simulation>('POST', '/v1/rules/simulate', { body: question, mayRepeat: true }),
    },

    lists: {
      create: (list: api.ListDraft, write: Write = {}) => of<api.List>('POST', '/v1/lists', { body: list, ...write }),
      all: (filter: { readonly type?: api.List['type'] } = {}) => byOffset<api.ListedList>('/v1/lists', filter),
      get: (listId: string) => get<api.ListWithUse>(`/v1/lists/${id(listId)}`),
      update: (listId: string, changes: Pick<api.ListDraft, 'description' | 'ttl'>) =>
        of<api.List>('PUT', `/v1/lists/${id(listId)}`, { body: changes }),
      delete: (listId: string) =>
        of<{ deleted: true; listId: string; affectedRules: string[] }>('DELETE', `/v1/lists/${id(listId)}`),
      entries: (listId: string, prefix?: string) =>
        byCursor<api.ListEntry>(`/v1/lists/${id(listId)}/entries`, { q: prefix }),
      changeEntries: (listId: string, changes: api.EntryChanges) =>
        of<api.EntriesChanged>('PATCH', `/v1/lists/${id(listId)}/entries`, { body: changes }),
      check: (listId: string, values: readonly string[]) =>
        of<api.EntriesChecked>('POST', `/v1/lists/${id(listId)}/entries/check`, { body: { values }, mayRepeat: true }),
    },

    webhooks: {
      /** The secret is in this answer only. */
      create: (webhook: api.WebhookDraft, write: Write = {}) =>
        of<api.CreatedWebhook>('POST', '/v1/webhooks', { body: webhook, ...write }),
      all: (filter: { readonly status?: api.Webhook['status'] } = {}) =>
        byOffset<api.ListedWebhook>('/v1/webhooks', filter),
      get: (webhookId: string) => get<api.Webhook>(`/v1/webhooks/${id(webhookId)}`),
      update: (webhookId: string, changes: api.WebhookChanges, guard: Guarded = {}) =>
        of<api.ChangedWebhook>('PUT', `/v1/webhooks/${id(webhookId)}`, { body: changes, ...guard }),
      delete: (webhookId: string, guard: Guarded = {}) =>
        of<{ deleted: true; webhookId: string }>('DELETE', `/v1/webhooks/${id(webhookId)}`, guard),
      rotateSecret: (webhookId: string, body: { readonly gracePeriodSeconds?: number } = {}) =>
        of<api.RotatedSecret>('POST', `/v1/webhooks/${id(webhookId)}/rotate-secret`, { body }),
      test: (webhookId: string, body: { readonly eventType?: string } = {}) =>
        of<api.TestedDelivery>('POST', `/v1/webhooks/${id(webhookId)}/test`, { body }),
      /** Newest first. */
      deliveries: (webhookId: string, filter: api.DeliveryFilter = {}) =>
        byCursor<api.Delivery>(`/v1/webhooks/${id(webhookId)}/deliveries`, filter),
      delivery: (webhookId: string, deliveryId: string) =>
        get<api.DeliveryInFull>(`/v1/webhooks/${id(webhookId)}/deliveries/${id(deliveryId)}`),
      redeliver: (webhookId: string, deliveryId: string) =>
        of<api.Queued>('POST', `/v1/webhooks/${id(webhookId)}/deliveries/${id(deliveryId)}/redeliver`, { body: {} }),
      /**
       * What happens in the environment of a test key, as it happens, without a webhook: at most once, over lost connections, until
       * the loop is left.
       */
      listen: (listening: ListenOptions = {}): AsyncGenerator<HeardEvent, void, undefined> =>
        listenTo(options, HEARD, listening),
      /** All that failed in that time. */
      redeliverSince: (webhookId: string, range: { readonly since: string; readonly until?: string }) =>
        of<api.Queued>('POST', `/v1/webhooks/${id(webhookId)}/redeliver`, { body: range }),
    },

    alerts: {
      create: (alert: api.AlertDraft, write: Write = {}) =>
        of<api.Alert>('POST', '/v1/alerts', { body: alert, ...write }),
      all: (filter: { readonly status?: api.Alert['status'] } = {}) => byOffset<api.Alert>('/v1/alerts', filter),
      get: (alertId: string) => get<api.Alert>(`/v1/alerts/${id(alertId)}`),
      update: (alertId: string, changes: Partial<api.AlertDraft>) =>
        of<api.Alert>('PUT', `/v1/alerts/${id(alertId)}`, { body: changes }),
      delete: (alertId: string) => of<{ deleted: true; alertId: string }>('DELETE', `/v1/alerts/${id(alertId)}`),
      /** Newest first. */
      incidents: (alertId: string) => byCursor<api.Incident>(`/v1/alerts/${id(alertId)}/incidents`, {}),
    },

    analytics: {
      events: (
        question: api.Range & {
          readonly groupBy?: 'verdict' | 'platform' | 'country' | 'hour' | 'day' | 'week'
          readonly verdict?: 'allow' | 'challenge' | 'block'
        },
      ) => get<api.EventCounts>('/v1/analytics/events', question),
      signals: (question: api.Range & { readonly groupBy?: 'signal' | 'day' | 'week'; readonly signal?: string }) =>
        get<api.SignalCounts>('/v1/analytics/signals', question),
    },

    /** Of the environment of the client's own key, which needs the scope `keys:write`. */
    keys: {
      all: () => byOffset<api.Key>('/v1/keys', {}),
      /** The key itself is in this answer only. */
      create: (key: api.KeyDraft, write: Write = {}) => of<api.NewKey>('POST', '/v1/keys', { body: key, ...write }),
      /** One new key in place of all of its kind. */
      rotate: (kind: api.Key['kind'], write: Write = {}) =>
        of<api.RotatedKey>('POST', '/v1/keys/rotate', { body: { kind }, ...write }),
      revoke: (keyId: string) => of<api.RevokedKey>('DELETE', `/v1/keys/${id(keyId)}`),
    },
    audit: (filter: { readonly resource?: api.AuditEntry['resource']; readonly id?: string } = {}) =>
      byCursor<api.AuditEntry>('/v1/audit', filter),
    meta: () => get<api.Meta>('/v1/meta'),
  }
}
