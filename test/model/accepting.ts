// What accepts in one thread of a model process: the ingress with its real code, over whatever log it is given.

import { openPresent } from '../../src/api/present.ts'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import type { ApiKey, KeyKind, Workspace } from '../../src/domain/workspace.ts'
import type { Handler, HttpRequest, HttpResponse, RouteOptions } from '../../src/http/message.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import type { OtherShards } from '../../src/ingress/hand-over.ts'
import { type Ingress, startIngress } from '../../src/ingress/ingress.ts'
import { newCounts } from '../../src/lib/counts.ts'
import { openClaims } from '../../src/lib/first-claims.ts'
import { openLogger } from '../../src/lib/logger.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import type { Caller } from '../../src/records/auth.ts'
import type { Rng } from '../helpers/rng.ts'
import type { SimHost } from './host.ts'
import type { Identify, Ports, ProcessNeeds } from './process.ts'

export interface AcceptingNeeds extends Pick<ProcessNeeds, 'partitions' | 'workspace' | 'onFailure'> {
  readonly host: SimHost
  readonly ports: Ports
  readonly random: Rng
  /** Names who waits for replies. */
  readonly ingressId: string
  /** Memory of the whole process, whatever becomes of its threads. */
  readonly claims: Int32Array
  readonly findEvent: Parameters<typeof startIngress>[0]['findEvent']
  readonly fateOf: Parameters<typeof startIngress>[0]['fateOf']
  readonly otherShards: OtherShards
}

export interface Accepting extends Pick<Ingress, 'isPending' | 'originalOf' | 'stop'> {
  identify(request: Identify, answer: (response: HttpResponse) => void): void
}

export function startAccepting(needs: AcceptingNeeds): Accepting {
  const { host, partitions, workspace, onFailure } = needs
  const { clock } = host
  let handle: Handler | null = null
  let before: RouteOptions['before']
  const ingress = startIngress({
    metrics: openMetrics(null),
    logger: openLogger('silent'),
    toldOfProxy: new Int32Array(1),
    otherShards: needs.otherShards,
    ...needs.ports,
    http: {
      route(method, _path, handler, options) {
        if (method !== 'POST') return
        handle = handler
        before = options?.before
      },
    },
    auth: { authenticate: (keyText) => callerIn(workspace, keyText ?? '') },
    limits: { take: () => Promise.reject(new Error('nothing is limited')) },
    config: { 'ingress.perIpPerSecondMax': 0, 'ingress.perWorkspacePerSecondMax': 0 },
    clock,
    random: (n) => needs.random.bytes(n),
    parsers: openParsers(16),
    partitions,
    ingressId: needs.ingressId,
    pendingMax: 1_000,
    pendingCounts: newCounts(1),
    nonceRoutes: openClaims(needs.claims, NONCE_WINDOW_MS, clock.monotonic),
    decisionWaitMs: 1_000,
    deadlineMs: 10_000,
    retentionDays: () => 30,
    trustedProxies: [],
    cookieDomain: '',
    present: openPresent(
      (error) => onFailure('ingress', error),
      () => 'call',
    ),
    refusal: () => null,
    findEvent: needs.findEvent,
    fateOf: needs.fateOf,
    workspace: () => workspace,
  })

  return {
    isPending: ingress.isPending,
    originalOf: ingress.originalOf,
    stop: ingress.stop,
    identify({ body, headers, ip, env, keyKind }, answer) {
      const sent: Readonly<Record<string, string>> = {
        ...headers,
        authorization: `Bearer ${keyKind}_${env}`,
        'content-type': 'application/json',
      }
      const request = {
        method: 'POST',
        path: '/v1/identify',
        query: '',
        params: {},
        body,
        context: null,
        answerHeaders: [],
        header: (name: string) => sent[name] ?? '',
        hasHeader: (name: string) => sent[name] !== undefined,
        headers: () => [],
        remoteAddress: () => ip,
        aborted: () => false,
        whenAborted: () => {},
      } as HttpRequest
      const refused = before?.(request) as HttpResponse | null | undefined
      if (refused) return answer(refused)
      const take = (outcome: HttpResponse | Error) => {
        if (outcome instanceof Error) onFailure('ingress', outcome)
        else answer(outcome)
      }
      const outcome = handle?.(request, take) as HttpResponse | undefined
      if (outcome !== undefined) take(outcome)
    },
  }
}

function callerIn(workspace: Workspace, keyText: string): Caller {
  const [kind, env] = keyText.split('_') as [KeyKind, Caller['env']]
  const key = { id: `key_${kind}`, workspace: workspace.id, env, kind, scopes: null, origins: null } as ApiKey
  return { key, workspace, env }
}
