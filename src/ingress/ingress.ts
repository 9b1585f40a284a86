// The ingress role: wires acceptance to the replies of engines and to the clients that wait for them.

import type { Bus } from '../bus/bus.ts'
import type { Env, StoredEvent } from '../domain/event.ts'
import type { Workspace } from '../domain/workspace.ts'
import { presentResult } from '../identity/result.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics, Refusal } from '../lib/metrics.ts'
import type { Limits } from '../limits/limits.ts'
import type { Original } from '../records/event-locator.ts'
import { type ReplyMessage, replySubject } from '../records/replies.ts'
import { type AcceptNeeds, createAccept } from './accept.ts'
import { createAnswers } from './answers.ts'
import { type IdentifyNeeds, serveIdentify } from './identify.ts'
import { createProxyWatch, PROXY_SUSPICIONS, type ProxyWatch } from './proxy-watch.ts'
import { openIngressRates } from './rates.ts'
import { answerRepeats, type RepeatsNeeds } from './repeats.ts'
import { createWaiting, type Overdue, type Waiting } from './waiting.ts'

export interface IngressNeeds
  extends Omit<AcceptNeeds, 'waiting' | 'refused'>,
    Omit<IdentifyNeeds, 'accept' | 'takeIngress' | 'accepted' | 'proxyWatch'>,
    Pick<RepeatsNeeds, 'kv' | 'findEvent'> {
  readonly bus: Pick<Bus, 'subscribe'>
  readonly metrics: Pick<Metrics, 'stages' | 'refused' | 'spans' | 'untrustedProxy'>
  readonly limits: Pick<Limits, 'take'>
  readonly logger: Pick<Logger, 'warn'>
  /** Shared by all shards: the log is told of a proxy that is not trusted by the first of them, once. */
  readonly toldOfProxy: Int32Array
  readonly config: {
    readonly 'ingress.perIpPerSecondMax': number
    readonly 'ingress.perWorkspacePerSecondMax': number
  }
  /** How long a client waits for its decision before it gets 202, milliseconds. */
  readonly decisionWaitMs: number
  /** What became of an accepted identification, as far as anybody can tell; the bus may lose an engine's answer. */
  readonly fateOf: (workspace: string, env: Env, requestId: string) => Promise<StoredEvent | Original | null>
  readonly workspace: (id: string) => Workspace | null
}

export interface Ingress {
  /** Accepted by this process and not decided yet. */
  isPending: Waiting['isPending']
  originalOf: Waiting['originalOf']
  pendingCount(): number
  /** How long the oldest of them has waited, milliseconds. */
  oldestMs(): number
  /** Whether a proxy seems to stand in front that is not trusted. */
  proxySuspicion: ProxyWatch['suspicion']
  stop(): void
}

const SWEEP_MS = 25
/** An answer that has not come by then may have been lost. */
const OVERDUE_MS = 1_000
const OVERDUE_MAX = 100

export function startIngress(needs: IngressNeeds): Ingress {
  const { bus, clock } = needs
  const waiting = createWaiting(needs.decisionWaitMs, clock.monotonic, needs.pendingCounts, () => {
    sweep()
    askAgain()
  })
  const refused = (reason: Refusal) => needs.metrics.refused.inc({ reason })
  const takeIngress = openIngressRates(needs.limits, () => refused('rate'), {
    perIp: needs.config['ingress.perIpPerSecondMax'],
    perWorkspace: needs.config['ingress.perWorkspacePerSecondMax'],
  })
  const answers = createAnswers(clock.monotonic)
  const accept = answerRepeats({ ...needs, answers, accept: createAccept({ ...needs, waiting, refused }) })
  const { stages, spans } = needs.metrics
  function accepted(ms: number, trace: string | null): void {
    stages.accept.observe(ms / 1_000)
    spans?.ended('fingerpost.accept', ms, {}, trace ?? undefined)
  }
  const proxyWatch = createProxyWatch((suspicion) => {
    needs.metrics.untrustedProxy.set(suspicion === null ? 0 : 1)
    if (suspicion === null || Atomics.exchange(needs.toldOfProxy, 0, 1) === 1) return
    const { says, mend } = PROXY_SUSPICIONS[suspicion]
    needs.logger.warn({ mend }, says)
  })
  serveIdentify({ ...needs, takeIngress, accept, accepted, proxyWatch })

  const unsubscribe = bus.subscribe(replySubject(needs.ingressId), (message) => {
    const { at, replies, replays } = message as ReplyMessage
    for (const [requestId, body] of replies) waiting.settle(requestId, { body })
    for (const { requestId, original, conflict } of replays) waiting.settle(requestId, { original, conflict })
    // An engine of an earlier version does not say when it told.
    if (at !== undefined) needs.metrics.stages.answer.observe(Math.max(0, clock.now() - at) / 1_000, replies.length)
  })
  const stopped = new AbortController()

  /** Starts `work`, which is done again and again as long as anybody waits. */
  function whileAnyWaits(everyMs: number, work: () => unknown): () => void {
    let isGoingOn = false
    async function goOn(): Promise<void> {
      isGoingOn = true
      while (waiting.size() > 0 && !stopped.signal.aborted) {
        await clock.sleep(everyMs, stopped.signal)
        await work()
      }
      isGoingOn = false
    }
    return () => {
      if (!isGoingOn) void goOn()
    }
  }
  const sweep = whileAnyWaits(SWEEP_MS, waiting.sweep)

  async function settleOverdue({ requestId, scope, keyKind }: Overdue): Promise<void> {
    const [id = '', env] = scope.split('/')
    const workspace = needs.workspace(id)
    const fate = await needs.fateOf(id, env as Env, requestId)
    if (fate === null || workspace === null) return
    if ('conflict' in fate) waiting.settle(requestId, { original: fate.requestId, conflict: fate.conflict })
    else waiting.settle(requestId, { body: presentResult(fate, workspace, keyKind) })
  }

  // What cannot be asked now is asked again.
  const askAgain = whileAnyWaits(OVERDUE_MS / 2, () =>
    Promise.allSettled(waiting.overdue(OVERDUE_MS, OVERDUE_MAX).map(settleOverdue)),
  )

  return {
    isPending: waiting.isPending,
    originalOf: waiting.originalOf,
    pendingCount: waiting.size,
    oldestMs: waiting.oldestMs,
    proxySuspicion: proxyWatch.suspicion,
    stop() {
      stopped.abort()
      unsubscribe()
    },
  }
}
