// The api role of a process: every endpoint of the REST surface, wired to what answers it.

import type { Bus } from '../bus/bus.ts'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { openPropagation } from '../control/propagation.ts'
import { accepted, type Submitter } from '../control/submit.ts'
import { ApiError } from '../domain/errors.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Cidr } from '../domain/ip.ts'
import type { Http } from '../http/server.ts'
import { clientAddress } from '../ingress/client-address.ts'
import { openErase } from '../ingress/erase.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Log } from '../log/log.ts'
import type { EventReads } from '../reads/events.ts'
import { openListSnapshots } from '../reads/list-snapshots.ts'
import { openMonitor } from '../reads/monitor.ts'
import { readRuleStats } from '../reads/rule-stats.ts'
import { openVisitorReads } from '../reads/visitors.ts'
import type { Auth } from '../records/auth.ts'
import type { KeyDirectory } from '../records/key-directory.ts'
import { lookUpLists, openListSource } from '../records/list-source.ts'
import { listsOfVisitor } from '../records/lists.ts'
import { adminRoutes } from './admin.ts'
import { registerRoutes } from './api.ts'
import { backtestRoutes } from './backtests.ts'
import { eventRoutes } from './events.ts'
import { listRoutes } from './lists.ts'
import { metaRoutes } from './meta.ts'
import { openOperator } from './operator.ts'
import { ruleHistoryRoutes } from './rule-history.ts'
import { type RuleTrialNeeds, ruleTrialRoutes } from './rule-trial.ts'
import { ruleRoutes } from './rules.ts'
import { visitorRoutes } from './visitors.ts'

const RETRY_AFTER_WIPED_SECONDS = 30

export interface ApiRoleNeeds {
  readonly http: Http
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly lifetime: Lifetime
  readonly auth: Auth
  readonly directory: KeyDirectory
  readonly submit: Submitter['submit']
  readonly events: EventReads
  readonly clickhouse: Pick<ClickHouse, 'query' | 'insert'>
  readonly retentionDays: number
  readonly partitions: number
  readonly build: { readonly version: string; readonly commit: string }
  readonly config: {
    readonly 'operator.token': string
    readonly 'lists.max': number
    readonly 'lists.entriesMax': number
    readonly trustedProxies: readonly Cidr[]
  }
}

export function startApi(needs: ApiRoleNeeds): void {
  const {
    http,
    log,
    kv,
    bus,
    clock,
    random,
    lifetime,
    auth,
    directory,
    submit,
    events,
    partitions,
    build,
    config,
    clickhouse,
  } = needs
  const { 'operator.token': token, trustedProxies } = config
  const propagation = openPropagation({ kv, bus, clock })
  lifetime.onClose(() => propagation.close())
  const erase = openErase({ log, kv, clock, random, partitions })
  const visitors = openVisitorReads(kv, partitions)
  const ruleStats = readRuleStats.bind(null, kv, partitions)
  const lookUp: RuleTrialNeeds['lookUp'] = (workspace, env, asked) =>
    lookUpLists(kv, workspace, env, asked, clock.now())
  const routes = [
    ...eventRoutes({ events, visitors }),
    ...visitorRoutes({
      visitors,
      async erase(workspace, env, visitorId) {
        const erasureId = await erase(workspace, env, visitorId)
        // The owner of the partition asked for the same, so that it is done in any case; asking again tells when it is.
        accepted(await submit({ type: 'list.forget', workspace, env, actor: 'erasure', data: { visitorId } }))
        return erasureId
      },
      listsOf: (workspace, env, visitorId) => listsOfVisitor(kv, workspace, env, visitorId, clock.now()),
    }),
    ...ruleRoutes({ kv, submit, awaitPropagation: propagation.awaitPropagation, clock, random, ruleStats }),
    ...ruleHistoryRoutes({ kv, submit, awaitPropagation: propagation.awaitPropagation, clock }),
    ...ruleTrialRoutes({ kv, events, monitor: openMonitor({ clickhouse, kv, clock, partitions }), lookUp }),
    ...listRoutes({
      ...{ kv, submit, clock, random },
      maxima: { listsMax: config['lists.max'], entriesMax: config['lists.entriesMax'] },
    }),
    ...metaRoutes({ ...build, native: http.native }),
    ...adminRoutes({ kv, submit, directory, clock, random }),
    ...backtestRoutes({ ...needs, snapshots: openListSnapshots({ ...needs, lists: openListSource(kv, clock) }) }),
  ]
  // Whatever these endpoints do not find would be called unknown.
  const authOfIntact: Auth = {
    authenticate(keyText, address) {
      const caller = auth.authenticate(keyText, address)
      if (directory.isWiped()) throw new ApiError('unavailable', { retryAfter: RETRY_AFTER_WIPED_SECONDS })
      return caller
    },
  }
  registerRoutes(http, routes, {
    auth: authOfIntact,
    operator: token === '' ? null : openOperator({ token, auth, clock }),
    addressHeaders: ['x-forwarded-for'],
    addressOf: (request) => clientAddress(request.remoteAddress(), request.header('x-forwarded-for'), trustedProxies),
  })
}
