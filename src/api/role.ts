// The api role of a process: every endpoint of the REST surface, wired to what answers it.

import type { Bus } from '../bus/bus.ts'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { openPropagation } from '../control/propagation.ts'
import type { Submitter } from '../control/submit.ts'
import { ApiError } from '../domain/errors.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Cidr } from '../domain/ip.ts'
import type { Routes } from '../http/dispatch.ts'
import type { HttpRequest } from '../http/message.ts'
import type { Driver } from '../http/server.ts'
import { openAnnotate } from '../ingress/annotate.ts'
import { clientAddress } from '../ingress/client-address.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { Limits } from '../limits/limits.ts'
import type { Log } from '../log/log.ts'
import { openAnalytics } from '../reads/analytics.ts'
import { openErasureReads } from '../reads/erasures.ts'
import { openEventPlaces } from '../reads/event-places.ts'
import { openEventRows } from '../reads/event-rows.ts'
import type { EventReads } from '../reads/events.ts'
import { type FreshVisitorsNeeds, openFreshVisitors } from '../reads/fresh-visitors.ts'
import { openIdentityReads } from '../reads/identity.ts'
import { openListSnapshots } from '../reads/list-snapshots.ts'
import { openMonitor } from '../reads/monitor.ts'
import { openOwned } from '../reads/owned.ts'
import { openPersonalReads } from '../reads/personal.ts'
import { readRuleStats } from '../reads/rule-stats.ts'
import { openEventTail } from '../reads/tail.ts'
import { openVisitorSearch } from '../reads/visitor-search.ts'
import { openVisitorReads } from '../reads/visitors.ts'
import type { Auth } from '../records/auth.ts'
import type { EventLocator } from '../records/event-locator.ts'
import type { KeyDirectory } from '../records/key-directory.ts'
import { lookUpLists, openListSource } from '../records/list-source.ts'
import { listsOfVisitor, membershipsOfVisitor, readList } from '../records/lists.ts'
import { keyRoutes } from './admin/keys.ts'
import { openOperator } from './admin/operator.ts'
import { adminRoutes } from './admin/routes.ts'
import { alertRoutes } from './alerts/routes.ts'
import { analyticsRoutes } from './analytics/routes.ts'
import { registerRoutes } from './api.ts'
import { type ConsoleNeeds, openConsole } from './console/console.ts'
import { serveConsolePages } from './console/pages.ts'
import type { Demo } from './demo/access.ts'
import { demoRoutes } from './demo/routes.ts'
import { labelRoutes } from './events/labels.ts'
import { eventListRoutes } from './events/list.ts'
import { openRelink } from './events/relink.ts'
import { eventRoutes } from './events/routes.ts'
import { eventStreamRoutes } from './events/stream.ts'
import { openIdempotency } from './idempotency.ts'
import { listRoutes } from './lists/routes.ts'
import { metaRoutes } from './meta.ts'
import { openPacedKv } from './paced-kv.ts'
import { openPacedSteps } from './paced-steps.ts'
import { openRates } from './rate-limits.ts'
import { serveReference } from './reference/serve.ts'
import type { ApiRoute } from './routes.ts'
import { backtestRoutes } from './rules/backtests.ts'
import { ruleHistoryRoutes } from './rules/history.ts'
import { ruleRoutes } from './rules/routes.ts'
import { type RuleTrialNeeds, ruleTrialRoutes } from './rules/trial.ts'
import type { SdkFile } from './static.ts'
import { openErasures } from './visitors/erase.ts'
import { erasureRoutes } from './visitors/erasures.ts'
import { visitorExportRoutes } from './visitors/export.ts'
import { visitorRoutes } from './visitors/routes.ts'
import { visitorSearchRoutes } from './visitors/search.ts'
import { splitRoutes } from './visitors/split.ts'
import { type WebhooksNeeds, webhookRoutes } from './webhooks/routes.ts'

const RETRY_AFTER_WIPED_SECONDS = 30

export interface ApiRoleNeeds {
  readonly metrics: Pick<Metrics, 'propagation'>
  readonly http: Routes
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly limits: Limits
  readonly clock: Clock
  readonly random: RandomBytes
  readonly lifetime: Lifetime
  readonly auth: Auth
  readonly directory: KeyDirectory
  readonly submit: Submitter['submit']
  readonly events: EventReads
  readonly sight: EventLocator
  readonly isFresh: FreshVisitorsNeeds['isFresh']
  readonly logger: Pick<Logger, 'error' | 'warn'>
  readonly clickhouse: Pick<ClickHouse, 'query' | 'insert'>
  readonly outgoing: Pick<WebhooksNeeds, 'guard' | 'attempts' | 'sealer' | 'ips'>
  readonly retentionDays: (workspace: string) => number
  readonly partitions: number
  readonly build: { readonly version: string; readonly commit: string }
  readonly driver: Driver
  readonly sdk: SdkFile
  /** What the build made of the guides. */
  readonly docsDir: string
  /** Where the build left the console. */
  readonly consoleDir: string
  readonly console: Pick<ConsoleNeeds, 'address' | 'serviceUrl' | 'isSecure' | 'oidc'> & {
    /** It has a listener of its own, with the operator's API. */
    readonly isApart: boolean
  }
  /** null: there is no demo page behind a link. */
  readonly demo: Demo | null
  readonly config: {
    readonly 'operator.token': string
    readonly 'lists.max': number
    readonly 'lists.entriesMax': number
    readonly 'webhooks.max': number
    readonly trustedProxies: readonly Cidr[]
  }
}

/**
 * Adds its routes, but for those of the operator's API and, where it is apart, the console: what is returned adds them to the server
 * that is to have them.
 */
export function startApi(needs: ApiRoleNeeds): (to: Pick<Routes, 'route'>) => void {
  const {
    http,
    log,
    kv,
    bus,
    limits,
    metrics,
    clock,
    random,
    lifetime,
    logger,
    auth,
    directory,
    submit,
    events,
    partitions,
    build,
    sdk,
    driver,
    config,
    clickhouse,
  } = needs
  const { 'operator.token': token, trustedProxies } = config
  const observe = (ms: number) => metrics.propagation.observe(ms / 1_000)
  const propagation = openPropagation({ kv, bus, clock, observe })
  lifetime.onClose(() => propagation.close())
  const visitors = openFreshVisitors({ ...needs, visitors: openVisitorReads(kv, partitions) })
  const annotate = openAnnotate({ log, kv, clock, random })
  const turns = openPacedSteps(clock)
  const pacedKv = openPacedKv(kv, turns, clock)
  const ruleStats = readRuleStats.bind(null, kv, partitions)
  const lookUp: RuleTrialNeeds['lookUp'] = (workspace, env, asked) =>
    lookUpLists(kv, workspace, env, asked, clock.now())
  const rows = openEventRows(needs)
  const snapshots = openListSnapshots({ ...needs, lists: openListSource(kv, clock) })
  const routes = [
    ...eventListRoutes({ events, visitors, turns, submit }),
    ...eventStreamRoutes({
      tail: openEventTail({
        log,
        partitions,
        clock,
        report: (error) => logger.error({ error }, 'following events failed'),
      }),
      owned: openOwned({ kv, partitions }),
      ...{ visitors, clock },
    }),
    ...labelRoutes({
      places: openEventPlaces({ rows, find: events.find, sight: needs.sight }),
      ...{ visitors, annotate, submit, clock, stopping: lifetime.stopping },
    }),
    ...eventRoutes({
      events,
      identity: openIdentityReads(kv, partitions),
      annotate,
      relink: openRelink({ annotate, clickhouse, kv, visitors, clock, partitions }),
      submit,
    }),
    ...visitorSearchRoutes({
      search: openVisitorSearch({ rows, visitors }),
      snapshots,
      listName: async (workspace, env, listId) => (await readList(kv, workspace, env, listId))?.name ?? null,
    }),
    ...visitorRoutes({
      visitors,
      erasures: openErasures({ log, kv, clock, random, partitions, submit }),
      submit,
      partitions,
      entriesMax: config['lists.entriesMax'],
      listsOf: (workspace, env, visitorId) => listsOfVisitor(kv, workspace, env, visitorId, clock.now()),
    }),
    ...splitRoutes({ ...needs, visitors }),
    ...erasureRoutes(openErasureReads({ kv, log, clock, partitions })),
    ...visitorExportRoutes({
      kv,
      clock,
      events,
      visitors,
      submit,
      turns,
      personal: openPersonalReads({ kv: pacedKv, clickhouse, partitions }),
      memberships: (workspace, env, visitorId) => membershipsOfVisitor(kv, workspace, env, visitorId, clock.now()),
    }),
    ...ruleRoutes({
      kv: pacedKv,
      submit,
      clock,
      random,
      ruleStats,
      sealer: needs.outgoing.sealer,
      awaitPropagation: propagation.awaitPropagation,
    }),
    ...ruleHistoryRoutes({ kv: pacedKv, submit, awaitPropagation: propagation.awaitPropagation, clock, turns }),
    ...ruleTrialRoutes({
      kv,
      events,
      monitor: openMonitor({ clickhouse, kv, clock, partitions, retentionDays: needs.retentionDays }),
      lookUp,
    }),
    ...listRoutes({
      kv,
      submit,
      clock,
      random,
      maxima: { listsMax: config['lists.max'], entriesMax: config['lists.entriesMax'] },
    }),
    ...webhookRoutes({ kv, bus, submit, clock, random, webhooksMax: config['webhooks.max'], ...needs.outgoing }),
    ...alertRoutes({ kv, submit, random }),
    ...metaRoutes({ ...build, native: driver === 'uws', driver }, sdk),
    ...adminRoutes({ kv, submit, directory, clock, random, sealer: needs.outgoing.sealer }),
    ...keyRoutes({ kv, submit, directory, clock, random }),
    ...analyticsRoutes({ analytics: openAnalytics(needs) }),
    ...backtestRoutes({ ...needs, snapshots }),
  ]
  serveReference(http, {
    rows: routes.filter(({ access }) => access !== 'operator' || token !== ''),
    version: build.version,
    dir: needs.docsDir,
  })
  // Whatever these endpoints do not find would be called unknown.
  const authOfIntact: Auth = {
    authenticate(keyText, address) {
      const caller = auth.authenticate(keyText, address)
      if (directory.isWiped()) throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_WIPED_SECONDS })
      return caller
    },
  }
  const serving = {
    auth: authOfIntact,
    clock,
    takeRate: openRates(limits),
    turns,
    idempotency: openIdempotency({ kv, limits, clock }),
    operator: token === '' ? null : openOperator({ token, auth, clock }),
    addressHeaders: ['x-forwarded-for'],
    addressOf: (request: HttpRequest) =>
      clientAddress(request.remoteAddress(), request.header('x-forwarded-for'), trustedProxies),
  }
  const ofOperator = ({ access }: ApiRoute) => access === 'operator'
  const forKeys = routes.filter((route) => !ofOperator(route))
  const people = openConsole({ ...needs, ...needs.console, sealer: needs.outgoing.sealer })
  const forPeople = { ...serving, guard: people.guard }
  if (needs.console.isApart) registerRoutes(http, forKeys, serving)
  else registerRoutes(http, [...forKeys, ...people.routes], forPeople)
  if (needs.demo !== null) registerRoutes(http, demoRoutes({ ...needs, ...needs.demo, rows: routes }), serving)
  return (to) => {
    registerRoutes(to, routes.filter(ofOperator), serving)
    if (needs.console.isApart) registerRoutes(to, [...forKeys, ...people.routes], forPeople)
    serveConsolePages(to, needs.consoleDir)
  }
}
