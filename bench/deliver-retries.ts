// A great many retries that wait for their time, due over an hour or less, in a kv on disk: how long a process takes to know them all, what it
// holds in memory meanwhile, and how late they leave, before it is killed and after another one has taken over.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { renderPayload } from '../src/dispatcher/envelope.ts'
import { sampleOf } from '../src/dispatcher/samples.ts'
import type { Commit, Put } from '../src/kv/kv.ts'
import { systemClock as clock } from '../src/lib/clock.ts'
import {
  DUE,
  deliveriesScope,
  deliveryIdOf,
  deliveryKey,
  dueId,
  nextKey,
  PENDING_DELIVERIES,
  payloadIdOf,
  payloadKey,
  type StoredDelivery,
  shardOf,
  shardScope,
} from '../src/records/deliveries.ts'
import type { HeldReport, HeldTask } from './deliver-held.ts'
import { type DeliverBench, type Receivers, say } from './deliver-setup.ts'

export const RETRY_WEBHOOKS = 1_000
export const RETRY_NAME = 'retry'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** An event failed at so many receivers: they have its body together. */
const SHARING = 10
const MEASURED_SECONDS = 30
const CATCHING_UP_MS = 5_000
const STORED_AT_ONCE = 20

/** Until everything is stored and known, nothing comes due. */
const leadMs = (count: number): number => 60_000 + Math.ceil(count / 4_000) * 1_000
let firstDueAt = 0

/** Leaves `count` deliveries behind that failed once. */
export async function storeRetries({ kv, webhook }: DeliverBench, count: number, spreadMs: number): Promise<void> {
  const startedAt = Date.now()
  firstDueAt = startedAt + leadMs(count)
  const each = Math.ceil(count / RETRY_WEBHOOKS)
  let commits: Commit[] = []
  for (let group = 0; group < RETRY_WEBHOOKS; group += SHARING) {
    const ids = Array.from({ length: SHARING }, (_, n) => webhook(RETRY_NAME, group + n, 'ok').id)
    const puts = ids.map((): Put[] => [])
    const bodies: Put[] = []
    for (let n = 0; n < each; n++) {
      const dueAt = firstDueAt + Math.floor(((n + group / RETRY_WEBHOOKS) / each) * spreadMs)
      const { eventId, ...told } = sampleOf('identification.complete', startedAt, `retry/${group}/${n}`)
      const payloadId = payloadIdOf('ws_bench', 'live', null, eventId)
      // The receiver tells how old a body is: here that is how late it came.
      const body = renderPayload({ ...told, eventId, at: dueAt }, '2026-11-01', new Set(['B']))
      bodies.push({ key: payloadKey(payloadId), value: body })
      for (const [i, id] of ids.entries()) {
        const deliveryId = deliveryIdOf(startedAt, eventId, id)
        const delivery: StoredDelivery = {
          eventId,
          type: told.type,
          status: 'pending',
          tries: 1,
          attemptsMade: 1,
          attempts: [],
          nextAttemptAt: dueAt,
          createdAt: startedAt,
          reason: null,
          payloadAt: 'p/0',
          payloadId,
          payloadUntil: startedAt + 15 * DAY_MS,
        }
        puts[i]?.push({ key: deliveryKey(deliveryId), value: delivery })
        puts[i]?.push({ key: [DUE, dueId(dueAt, deliveryId)], value: true })
      }
    }
    commits.push({ scope: 'p/0', put: bodies })
    for (const [i, id] of ids.entries()) {
      const next = { workspace: 'ws_bench', env: 'live', at: startedAt }
      commits.push({ scope: deliveriesScope(id), put: puts[i] ?? [], add: [[PENDING_DELIVERIES, each]] })
      commits.push({ scope: shardScope(shardOf(id)), put: [{ key: nextKey(id), value: next }] })
    }
    if (commits.length < STORED_AT_ONCE) continue
    await kv.commit(commits)
    commits = []
  }
  await kv.commit(commits)
  say(`${each * RETRY_WEBHOOKS} retries stored in ${Math.round((Date.now() - startedAt) / 1_000)} s`)
}

/** One process until it is killed, then another. */
export async function benchRetries({ place, received }: Receivers, count: number, spreadMs: number): Promise<void> {
  await received()
  const task: HeldTask = { place, webhooks: RETRY_WEBHOOKS, name: RETRY_NAME }
  let from = firstDueAt
  for (const name of ['first process', 'after it was killed']) {
    const child = fork(new URL('./deliver-held.js', import.meta.url), [JSON.stringify(task)])
    const startedAt = Date.now()
    const known = await report(child)
    const readyMs = Date.now() - startedAt
    say(`${name}: knows when each of ${RETRY_WEBHOOKS} webhooks is due next after ${readyMs} ms, ${memoryOf(known)}`)
    if (name === 'first process') {
      await clock.sleep(Math.max(0, from - Date.now()))
    } else {
      await clock.sleep(CATCHING_UP_MS)
      const { hits, last } = await received()
      say(`  ${hits} that came due meanwhile, at most ${last} ms late`)
      from = Date.now()
    }
    await clock.sleep(MEASURED_SECONDS * 1_000)
    const until = Date.now()
    const { hits, p50, p95, p99, last } = await received()
    const wanted = Math.round((count / spreadMs) * (until - from))
    child.send('tell')
    const held = await report(child)
    say(`  ${hits} arrived in ${Math.round((until - from) / 1_000)} s, about ${wanted} were due; ${memoryOf(held)}`)
    say(
      `  late by p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, at most ${last} ms; ${cpuOf(held, hits)} µs of CPU each`,
    )
    from = until
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

const report = async (child: ChildProcess): Promise<HeldReport> => ((await once(child, 'message')) as [HeldReport])[0]

const mb = (bytes: number): number => Math.round(bytes / 1_048_576)
const memoryOf = ({ heapBytes, ownBytes }: HeldReport): string =>
  `heap ${mb(heapBytes)} MB, own memory ${mb(ownBytes)} MB`
const cpuOf = ({ cpuMicros }: HeldReport, count: number): number => Math.round(cpuMicros / Math.max(1, count))
