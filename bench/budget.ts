// What one identification costs, step by step, in microseconds and in times of JSON.parse of the same body: all in one process and in
// turns, so that what else the machine does falls on numerator and denominator alike. Durable storage, sockets and the collector's own
// threads are not in it. Usage: npm run bench -- budget [--devices 2000] [--batch 8] [--rounds 1000] [--seed 1] [--json | --record]
// `--record` writes bench/budget.json, which test/bench/budget.test.ts holds later builds to.

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import { type IdentifyBody, JSON_DEPTH_MAX } from '../src/domain/identify.ts'
import { hash32, makeRequestId } from '../src/domain/ids.ts'
import { makeKey } from '../src/domain/keys.ts'
import type { ApiKey, Workspace } from '../src/domain/workspace.ts'
import { countDecisions } from '../src/engine/count-decisions.ts'
import type { FreshReply } from '../src/engine/decided.ts'
import type { Frame } from '../src/engine/frames.ts'
import { openFrame } from '../src/engine/open-frame.ts'
import { createPartition } from '../src/engine/partition.ts'
import { decodeEventsRecord, rowAt } from '../src/events/record.ts'
import { fromRow } from '../src/events/row.ts'
import { writeRow } from '../src/events/write-row.ts'
import { nestsDeeper } from '../src/http/json-depth.ts'
import { decodeUtf8 } from '../src/http/utf8.ts'
import { openParsers } from '../src/identity/parsers.ts'
import { presentResult } from '../src/identity/result.ts'
import { hardwareKey } from '../src/identity/routing.ts'
import { verifyToken } from '../src/identity/token.ts'
import { checkIdentify } from '../src/ingress/body.ts'
import { NO_FACTS } from '../src/ipintel/addresses.ts'
import { systemClock } from '../src/lib/clock.ts'
import { clearLines } from '../src/lib/json-lines.ts'
import { openMetrics } from '../src/lib/metrics.ts'
import { must } from '../src/lib/must.ts'
import { openAuth } from '../src/records/auth.ts'
import { type Decoded, encodeIdentification, factsOf } from '../src/records/identification.ts'
import { openKeyDirectory } from '../src/records/key-directory.ts'
import { KEY, keyDigest } from '../src/records/keys.ts'
import { WORKSPACE as WORKSPACES } from '../src/records/workspaces.ts'
import { encodeSnapshot, openSnapshot } from '../src/rules/snapshot.ts'
import { absent, answered } from '../test/helpers/asking.ts'
import { openRequests } from './budget-http.ts'
import { type BudgetVisit, openVisits } from './budget-visits.ts'
import { ENV, WORKSPACE } from './identity/record.ts'
import { makeRule } from './population.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    devices: { type: 'string', default: '2000' },
    batch: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
  },
})
/** Of the sources, seen from where this is built. */
const RECORDED = new URL('../../bench/budget.json', import.meta.url)
const devices = Number(options.devices)
const batchSize = Number(options.batch)
const rounds = Number(options.rounds)
/** Rounds that only warm the compiler up. */
const WARM_ROUNDS = 400
const CHECKPOINT_ROUNDS = 128
const RULES = 50
const RETENTION_DAYS = 90

const visits = openVisits(devices, Number(options.seed))
const parsers = openParsers()
const rules = Array.from({ length: RULES }, (_, i) => ({
  ...makeRule(i),
  id: `rul_${String(i).padStart(20, '0')}`,
  priority: 10 + i,
}))
const ruleset = openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: ENV, revision: 1, rules } as never))
const partition = createPartition({
  partition: 0,
  partitions: 1,
  random: visits.random,
  monotonic: () => 0,
  ruleset: () => ruleset,
  visitorsMax: Number.POSITIVE_INFINITY,
  healsPerSecondMax: 5,
})

/** A directory that knows four keys, over a store that has nothing else. */
async function openKeys() {
  const texts = Array.from({ length: 4 }, () => makeKey('public', ENV, visits.random))
  const workspace: Workspace = { ...WORKSPACE, name: 'bench', createdAt: 0 }
  const keys = texts.map(
    (text, i): ApiKey => ({
      id: `key_${i}`,
      workspace: workspace.id,
      env: ENV,
      kind: 'public',
      digest: keyDigest(text),
      ...{
        last4: text.slice(-4),
        label: null,
        scopes: null,
        origins: null,
        createdAt: 0,
        expiresAt: null,
        revokedAt: null,
      },
    }),
  )
  const stored: Readonly<Record<string, readonly unknown[]>> = { [KEY]: keys, [WORKSPACES]: [workspace] }
  const directory = await openKeyDirectory({
    kv: {
      get: async (_scope, wanted) => wanted.map(() => null),
      scan: async (_scope, collection) =>
        (stored[collection] ?? []).map((value, i) => ({
          key: [collection, String(i)],
          value: value as never,
          version: 1,
        })),
      position: async () => 0,
    },
    log: { last: async () => 0 },
    bus: { publish() {}, subscribe: () => () => {}, close: async () => {}, isLossy: true },
    // What was loaded once stays fresh: rounds leave no time to look again.
    clock: { ...systemClock, monotonic: () => 0, sleep: () => new Promise(() => {}) },
    sealer: null,
    report: (error) => {
      throw error
    },
  })
  return { texts, directory, auth: openAuth(directory, systemClock) }
}

const { texts, directory, auth } = await openKeys()
const caller = auth.authenticate(must(texts[0], 'a key'), '203.0.113.1')
const request = openRequests()
const locate = () => NO_FACTS

/** The record, and beside it what it was made of, by which the same thread decides it. */
function stamp({ meta, bytes, seq }: BudgetVisit, body: IdentifyBody): Frame {
  const requestId = makeRequestId(meta.acceptedAt, visits.random)
  if (meta.token === null) hash32(hardwareKey(body, meta.headers, meta.headers['user-agent'] ?? '', parsers))
  // Field by field, as the ingress makes it: a copy costs four times as much.
  const { acceptedAt, workspace, env, keyKind, ip, headers, token, tokenForged, replyTo } = meta
  const stamped = { requestId, acceptedAt, workspace, env, keyKind, ip, headers, token, tokenForged, replyTo }
  const attached = { meta: stamped, body, facts: factsOf(bytes, body) } satisfies Decoded
  return { seq, bytes: encodeIdentification(stamped, bytes), attached }
}

// Nobody else has an entry: what the partition asks for is absent.
const decide = (frames: readonly Frame[]) => answered(partition.decide(frames, new Set()), absent)

const metrics = openMetrics(null)

/** What ingress and engine count and time of a batch. */
function count(replies: readonly FreshReply[]): void {
  const begunAt = systemClock.now()
  const batchFrom = systemClock.monotonic()
  for (const _ of replies) {
    const from = systemClock.monotonic()
    metrics.stages.accept.observe((systemClock.monotonic() - from) / 1_000)
  }
  const decideMs = systemClock.monotonic() - batchFrom
  countDecisions(metrics, replies, { begunAt, decideMs, flushMs: systemClock.monotonic() - batchFrom })
  metrics.stages.answer.observe((systemClock.now() - begunAt) / 1_000, replies.length)
}

interface Spent {
  /** Microseconds per event. */
  readonly us: number
  /** Of garbage, and of what stays. Unknown where the collector came in between. */
  readonly kilobytes: number | null
}

function measure<T>(work: () => T, events: number): [made: T, spent: Spent] {
  const heap = getHeapStatistics().used_heap_size
  const from = performance.now()
  const made = work()
  const us = ((performance.now() - from) * 1_000) / events
  const grown = getHeapStatistics().used_heap_size - heap
  return [made, { us, kilobytes: grown < 0 ? null : grown / 1_000 / events }]
}

const without = (whole: Spent, parts: readonly Spent[]): Spent =>
  parts.reduce(
    (left, { us, kilobytes }) => ({
      us: left.us - us,
      kilobytes: left.kilobytes === null || kilobytes === null ? null : left.kilobytes - kilobytes,
    }),
    whole,
  )

/** Every step over the same visits, one step after the other. */
function round(batch: readonly BudgetVisit[]): Record<string, Spent> {
  const { length } = batch
  function step<T>(one: (visit: BudgetVisit, i: number) => T): [T[], Spent] {
    return measure(() => batch.map(one), length)
  }
  const sent = batch.map((_, i) => Buffer.from(must(texts[i % texts.length], 'a key')).toString('latin1'))

  const [parsed, parse] = step(({ bytes }) => JSON.parse(decodeUtf8(bytes) ?? '') as unknown)
  const [read, schema] = step(({ meta }, i) => {
    nestsDeeper(parsed[i], JSON_DEPTH_MAX)
    return checkIdentify(parsed[i], caller, meta.acceptedAt, RETENTION_DAYS)
  })
  const [, key] = step(({ meta }, i) => auth.authenticate(sent[i] as string, meta.ip))
  const [, verify] = step(({ token }) =>
    token === null ? null : verifyToken(WORKSPACE.tokenSecret, WORKSPACE.id, ENV, token),
  )
  const [frames, stamping] = step((visit, i) => stamp(visit, must(read[i], 'a body').body))
  const [, open] = step((_, i) => openFrame(must(frames[i], 'a record'), parsers, locate))
  const [decided, whole] = measure(() => decide(frames), length)
  if (decided.dead.length > 0) throw new Error(`not decided: ${decided.dead[0]?.reason}`)
  const events = decided.records.flatMap((bytes) => {
    const record = decodeEventsRecord(bytes)
    return record.items.map((_, i) => fromRow(rowAt(record, i)))
  })
  clearLines()
  const [, row] = step(({ seq }, i) => writeRow(must(events[i], 'an event'), 0, seq))
  const [bodies, answer] = step((_, i) => presentResult(must(events[i], 'an event'), WORKSPACE, 'public'))
  const [, http] = step((visit, i) => request(visit, must(bodies[i], 'an answer')))
  const [, figures] = measure(() => count(decided.replies), length)
  decided.replies.forEach(({ body }, i) => {
    visits.answered(must(batch[i], 'a visit').device, body)
  })
  return {
    http,
    key,
    parse,
    'depth and schema': schema,
    'verify token': verify,
    stamp: stamping,
    'open case': open,
    decide: without(whole, [open, row, answer]),
    row,
    'sign and answer': answer,
    figures,
  }
}

const median = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[figures.length >> 1] ?? Number.NaN

for (let device = 0; device < devices; device += batchSize) {
  const batch = Array.from({ length: Math.min(batchSize, devices - device) }, (_, i) => visits.first(device + i))
  round(batch)
}
const measured: Record<string, Spent>[] = []
for (let i = -WARM_ROUNDS; i < rounds; i++) {
  const figures = round(Array.from({ length: batchSize }, () => visits.next()))
  if (i >= 0) measured.push(figures)
  if (i % CHECKPOINT_ROUNDS === 0) partition.checkpoint()
}
directory.close()

/** A step's price: its own median, and the median of what it is of parsing in the same round. */
function priceOf(name: string) {
  const spent = measured.map((one) => must(one[name], 'a figure'))
  return {
    us: median(spent.map(({ us }) => us)),
    parses: median(spent.map(({ us }, i) => us / must(measured[i]?.parse, 'a figure').us)),
    kilobytes: median(spent.flatMap(({ kilobytes }) => kilobytes ?? [])),
  }
}
const steps = Object.keys(measured[0] ?? {}).map((name) => ({ name, ...priceOf(name) }))
// Not the median of sums: in most rounds something comes in between, the collector or a neighbour, and in few steps.
const total = steps.reduce(
  (sum, step) => ({
    us: sum.us + step.us,
    parses: sum.parses + step.parses,
    kilobytes: sum.kilobytes + step.kilobytes,
  }),
  { us: 0, parses: 0, kilobytes: 0 },
)

const rounded = ({ parses, kilobytes }: typeof total) => ({
  parses: Math.round(parses * 100) / 100,
  kilobytes: Math.round(kilobytes * 10) / 10,
})

if (options.record) {
  const recorded = {
    total: rounded(total),
    steps: Object.fromEntries(steps.map((step) => [step.name, rounded(step)])),
  }
  writeFileSync(RECORDED, `${JSON.stringify(recorded, null, 2)}\n`)
}
if (options.json) console.log(JSON.stringify({ steps, total }))
else {
  for (const { name, us, parses, kilobytes } of [...steps, { name: 'total', ...total }]) {
    const figures = [`${us.toFixed(1)} us`, `${parses.toFixed(2)} parses`, `${kilobytes.toFixed(1)} kB`]
    console.log(name.padEnd(18) + figures.map((text) => text.padStart(14)).join(''))
  }
}
