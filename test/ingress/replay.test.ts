// Repeats of a nonce within an ingress process: what they are answered from, and what the stores are asked for them.

import t from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import type { ApiKey, KeyKind, Workspace } from '../../src/domain/workspace.ts'
import { failedEvent } from '../../src/engine/failed.ts'
import type { Answer, Handler, HttpRequest, HttpResponse } from '../../src/http/message.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { startIngress } from '../../src/ingress/ingress.ts'
import type { KvKey } from '../../src/kv/kv.ts'
import { newCounts } from '../../src/lib/counts.ts'
import { newClaims, openClaims } from '../../src/lib/first-claims.ts'
import { openLogger } from '../../src/lib/logger.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import { decodeIdentification } from '../../src/records/identification.ts'
import { replySubject } from '../../src/records/replies.ts'
import { NO_OTHERS } from '../helpers/no-others.ts'
import { rng } from '../helpers/rng.ts'

const MINUTE_MS = 60_000
const workspace = { id: 'ws_1', plan: 'pro', settings: {}, tokenSecret: '00'.repeat(32) } as unknown as Workspace
const visitorId = 'pv_00000000000000000001'

const originalEvent = (requestId: string) =>
  failedEvent(
    {
      requestId,
      acceptedAt: 0,
      workspace: 'ws_1',
      env: 'live',
      keyKind: 'public',
      ip: '192.0.2.1',
      headers: {},
      token: null,
      tokenForged: false,
      replyTo: '',
    },
    visitorId,
    'evaluation_failed',
  )

interface Asked {
  readonly found: number
  readonly appended: number
}

/** An ingress whose engine decides at once and remembers no nonce unless told to. */
function openIngress() {
  let nowMs = Date.parse('2026-11-22T12:00:00Z')
  let handle: Handler | null = null
  let before: ((request: HttpRequest) => unknown) | undefined
  const counted = { found: 0, appended: 0 }
  const erased = new Set<string>()
  let original: { readonly requestId: string; readonly conflict: boolean } | null = null
  const random = rng(1)
  const bus = openLocalBus({ onError: (error) => t.fail(String(error)) })
  const clock = { now: () => nowMs, monotonic: () => nowMs, sleep: () => new Promise<void>(() => {}) }
  const callerOf = (kind: KeyKind) => ({
    key: {
      id: `key_${kind}`,
      workspace: workspace.id,
      env: 'live',
      kind,
      scopes: null,
      origins: null,
    } as unknown as ApiKey,
    workspace,
    env: 'live' as const,
  })
  startIngress({
    metrics: openMetrics(null),
    logger: openLogger('silent'),
    toldOfProxy: new Int32Array(1),
    otherShards: NO_OTHERS,
    log: {
      pipelined: true,
      async append(_topic: string, _partition: number, records: readonly Uint8Array[]) {
        for (const bytes of records) {
          const seq = ++counted.appended
          const { requestId } = decodeIdentification(bytes).meta
          const replies = original === null ? [[requestId, JSON.stringify({ requestId, visitorId, seq })]] : []
          const replays =
            original === null
              ? []
              : [
                  {
                    requestId,
                    workspace: 'ws_1',
                    env: 'live',
                    original: original.requestId,
                    conflict: original.conflict,
                  },
                ]
          bus.publish(replySubject('ing_1'), { replies, replays })
        }
        return counted.appended
      },
    },
    bus,
    clock,
    kv: {
      get: async <T>(_scope: string, keys: readonly KvKey[]) =>
        keys.map((key) => (erased.size === 0 ? null : { key, value: { erasureId: 'era_1', at: 0 } as T, version: 1 })),
      position: async () => 1,
    },
    http: {
      route(method, _path, handler, options) {
        if (method !== 'POST') return
        handle = handler
        before = options?.before
      },
    },
    auth: { authenticate: (key) => callerOf((key ?? '').slice(0, 2) === 'pk' ? 'public' : 'secret') },
    limits: { take: () => Promise.reject(new Error('nothing is limited')) },
    config: { 'ingress.perIpPerSecondMax': 0, 'ingress.perWorkspacePerSecondMax': 0 },
    random: (n) => random.bytes(n),
    parsers: openParsers(16),
    partitions: 1,
    ingressId: 'ing_1',
    pendingMax: 1_000,
    pendingCounts: newCounts(1),
    nonceRoutes: openClaims(newClaims(1_024), NONCE_WINDOW_MS, clock.monotonic),
    decisionWaitMs: 1_000,
    deadlineMs: 10_000,
    retentionDays: () => 30,
    trustedProxies: [],
    cookieDomain: '',
    present: (error) => ({
      status: 500,
      body: JSON.stringify({ code: (error as { code?: string }).code ?? String(error) }),
    }),
    refusal: () => null,
    async findEvent(_workspace, _env, requestId) {
      counted.found++
      return erased.has(visitorId) ? null : originalEvent(requestId)
    },
    fateOf: async () => null,
    workspace: () => workspace,
  })

  function identify(body: object, key = 'pk_1'): Promise<HttpResponse> {
    const sent: Record<string, string> = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const request = {
      method: 'POST',
      path: '/v1/identify',
      query: '',
      params: {},
      context: null,
      answerHeaders: [],
      body: Buffer.from(JSON.stringify(body)),
      header: (name: string) => sent[name] ?? '',
      hasHeader: (name: string) => Object.hasOwn(sent, name),
      remoteAddress: () => '192.0.2.1',
    } as unknown as HttpRequest
    before?.(request)
    return new Promise((resolve) => {
      const answered = handle?.(request, resolve as Answer)
      if (answered !== undefined) resolve(answered)
    })
  }

  return {
    identify,
    pass(ms: number): void {
      nowMs += ms
    },
    erase: (id: string) => erased.add(id),
    asked: (): Asked => ({ ...counted }),
    /** From now on the engine calls every request a repeat of this one. */
    repeats(requestId: string): void {
      original = { requestId, conflict: false }
    },
    now: () => nowMs,
  }
}

const nonce = 'nonce-of-a-test-0001'
const isReplay = ({ headers = [] }: HttpResponse) => headers.some(([name]) => name === 'Idempotent-Replayed')

t.test('a repeat of a decided nonce is answered to the byte without log, engine or history', async (t) => {
  const { identify, asked, pass } = openIngress()
  const first = await identify({ nonce })
  t.notOk(isReplay(first))
  for (let i = 0; i < 50; i++) {
    const again = await identify({ nonce })
    t.equal(again.body, first.body)
    t.ok(isReplay(again))
  }
  t.same(asked(), { found: 0, appended: 1 })
  const other = await identify({ nonce, linkedId: 'another' })
  t.match(other.body, 'idempotency_conflict', 'and another body is refused')
  t.same(asked(), { found: 0, appended: 1 })
  pass(2 * MINUTE_MS + 1)
  t.not((await identify({ nonce })).body, first.body, 'after two minutes its owner says what it is')
  t.same(asked(), { found: 0, appended: 2 })
})

t.test('a repeat that only its owner knows is looked up once', async (t) => {
  const { identify, asked, repeats, now, pass } = openIngress()
  const first = makeRequestId(now(), (n) => new Uint8Array(n))
  repeats(first)
  pass(MINUTE_MS)
  const answers: HttpResponse[] = []
  for (let i = 0; i < 20; i++) answers.push(await identify({ nonce }))
  t.equal(new Set(answers.map(({ body }) => body)).size, 1)
  t.ok(answers.every(isReplay))
  t.same(asked(), { found: 1, appended: 1 })
  await identify({ nonce }, 'sk_1')
  await identify({ nonce }, 'sk_1')
  t.same(asked(), { found: 2, appended: 2 }, 'once for each kind of key, which get different answers')
  pass(MINUTE_MS + 1)
  await identify({ nonce })
  t.same(asked(), { found: 3, appended: 3 }, 'two minutes from the first, not from when it was looked up')
})

t.test('repeats that come together look their event up once', async (t) => {
  const { identify, asked, repeats } = openIngress()
  repeats('req_01ARZ3NDEKTSV4RRFFQ69G5FAV')
  const answers = await Promise.all(Array.from({ length: 20 }, () => identify({ nonce })))
  t.same(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size, 1)
  t.equal(answers[0]?.status, 200)
  t.ok(answers.every(isReplay))
  t.equal(asked().found, 1)
})

t.test('a repeat tells nothing of a visitor that was erased meanwhile', async (t) => {
  const { identify, erase, repeats } = openIngress()
  const first = await identify({ nonce })
  erase(visitorId)
  repeats(JSON.parse(first.body as string).requestId)
  t.match((await identify({ nonce })).body, 'unavailable')
})
