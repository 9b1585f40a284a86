// How fast deliveries leave: `npm run bench -- deliver [raw|flow|paced|hang|fanout|retries|all] [events [minutes]]`. The sender
// alone against bare undici posting the same signed bytes; the way from what happened to the receiver on an LMDB kv; what a receiver
// of a hundred that hangs costs the others; one event for a thousand webhooks; and a great many retries, due over so many minutes.

import { Agent } from 'undici'
import { deliveryHeaders } from '../src/dispatcher/envelope.ts'
import { type OutboxEntries, outboxEntriesOf } from '../src/dispatcher/match.ts'
import { passOn } from '../src/dispatcher/pass-on.ts'
import { sampleOf } from '../src/dispatcher/samples.ts'
import { openCancel } from '../src/lib/cancel.ts'
import { systemClock as clock } from '../src/lib/clock.ts'
import { benchFanOut } from './deliver-fanout.ts'
import { benchRetries, storeRetries } from './deliver-retries.ts'
import { busy, cpuEach, type DeliverBench, openReceivers, openSending, say } from './deliver-setup.ts'

const what = process.argv[3] ?? 'all'
const wanted = Number(process.argv[4] ?? 20_000)
const RAW_SECONDS = 3
const WEBHOOKS = 100
const AT_ONCE = 256
const BATCH = 256
const ROUNDS = 2
/** Until what runs often is compiled. */
const WARM_UP_EVENTS = 10_000
let runs = 0

const receivers = await openReceivers()
const bench: DeliverBench = { ...receivers, ...(await openSending(receivers.place)) }
say(busy())
if (what === 'raw' || what === 'all') await benchRaw(bench)
if (what !== 'raw' && what !== 'retries') await run('warming up', 0, Number.POSITIVE_INFINITY, WARM_UP_EVENTS)
if (what === 'flow' || what === 'all') await run('as fast as it goes', 0, Number.POSITIVE_INFINITY)
if (what === 'paced' || what === 'all') await run('1,000 a second', 0, 1_000)
if (what === 'hang' || what === 'all') await benchHanging()
if (what === 'fanout' || what === 'all') await benchFanOut(bench)
const spreadMs = Number(process.argv[5] ?? 60) * 60_000
const retries = what === 'retries' ? Number(process.argv[4] ?? 1_000_000) : what === 'all' ? 100_000 : 0
if (retries > 0) await storeRetries(bench, retries, spreadMs)
await bench.close()
if (retries > 0) await benchRetries(receivers, retries, spreadMs)
say(busy())
receivers.close()

async function benchRaw({ poster, place: { ca, port, secret } }: DeliverBench): Promise<void> {
  const body = Buffer.from(JSON.stringify({ filler: 'x'.repeat(1_480) }))
  const url = new URL(`https://localhost:${port}/raw`)
  const signed = () =>
    deliveryHeaders({
      shape: 'B',
      type: 'visitor.new',
      eventId: 'evt_0',
      body,
      nowMs: Date.now(),
      userAgent: 'bench',
      secrets: { main: secret, next: null },
    })
  const never = openCancel()
  const bare = new Agent({ connect: { ca }, connections: AT_ONCE, pipelining: 1 })
  const head = { origin: url.origin, path: url.pathname, method: 'POST' } as const
  const ways = {
    'bare undici, signed': async () => (await bare.request({ ...head, headers: signed(), body })).body.dump(),
    'our sender, signed': () => poster.post(url, signed(), body, never),
  }
  const rates = new Map<string, number>()
  // In turns, so that what else goes on meets both; the first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, post] of Object.entries(ways)) {
      const perSecond = await rate(name, post)
      if (round > 0) rates.set(name, (rates.get(name) ?? 0) + perSecond / ROUNDS)
    }
  }
  const [bareRate = 1, ownRate = 0] = rates.values()
  say(`raw: ${Math.round(ownRate)} a second against ${Math.round(bareRate)}, ratio ${(ownRate / bareRate).toFixed(2)}`)
  await bare.close()
  await bench.received()
}

async function rate(name: string, post: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  const until = startedAt + RAW_SECONDS * 1_000
  const cpu = process.cpuUsage()
  let done = 0
  const work = async () => {
    for (; performance.now() < until; done++) await post()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  const perSecond = done / ((performance.now() - startedAt) / 1_000)
  say(`${name}: ${Math.round(perSecond)} a second, ${cpuEach(cpu, done)} µs of CPU each`)
  return perSecond
}

/** One delivery per event, over the webhooks in turn: how many a second arrived at those that do not hang. */
async function run(
  name: string,
  hanging: number,
  perSecondMax: number,
  events = wanted,
): Promise<{ rate: number; p99: number }> {
  const tag = `${name.replace(/\W/g, '')}${runs++}`.slice(-12)
  const webhooks = Array.from({ length: WEBHOOKS }, (_, n) => bench.webhook(tag, n, n < hanging ? 'hang' : 'ok'))
  const { sender, stop } = bench.startSender(webhooks)
  const tenants = webhooks.map((webhook) => bench.tenantOf([webhook]))
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  for (let n = 0; n < events; ) {
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const due = Math.min(events, ((performance.now() - startedAt) / 1_000) * perSecondMax, n + BATCH)
    for (; n < due; n++) {
      const occurrence = sampleOf('identification.complete', Date.now(), `${tag}/${n}`)
      const found = { occurrence, verdict: null, ruleId: null, botDetected: null }
      const at = { payloadAt: 'p/0', nowMs: Date.now(), visitorId: 'pv_00000000000000000000' }
      outboxEntriesOf(told, tenants[n % WEBHOOKS] ?? bench.tenantOf([]), found, at)
    }
    await passOn({ kv: bench.kv, bus: bench.bus, handover: sender }, told, Date.now())
    if (perSecondMax < Number.POSITIVE_INFINITY) await clock.sleep(2)
  }
  const due = Math.round((events * (WEBHOOKS - hanging)) / WEBHOOKS)
  const ages = { hits: 0, p50: 0, p95: 0, p99: 0 }
  while (ages.hits < due && performance.now() - startedAt < 300_000) {
    await clock.sleep(20)
    const { hits, p50, p95, p99 } = await bench.received()
    if (hits > ages.hits) Object.assign(ages, { p50, p95, p99 })
    ages.hits += hits
  }
  const perSecond = ages.hits / ((performance.now() - startedAt) / 1_000)
  const counts = `${ages.hits} of ${due} received, ${Math.round(perSecond)} a second`
  say(`${name}: ${counts}, ${cpuEach(cpu, ages.hits)} µs of CPU each`)
  say(`  from event to receiver p50 ${ages.p50} ms, p95 ${ages.p95} ms, p99 ${ages.p99} ms`)
  await stop()
  return { rate: perSecond, p99: ages.p99 }
}

async function benchHanging(): Promise<void> {
  const sums = { well: { rate: 0, p99: 0 }, hanging: { rate: 0, p99: 0 } }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, sum] of Object.entries(sums)) {
      const one = await run(name, name === 'well' ? 0 : 1, Number.POSITIVE_INFINITY)
      sum.rate += one.rate
      sum.p99 += one.p99
    }
  }
  const loss = 1 - sums.hanging.rate / sums.well.rate
  say(`one of ${WEBHOOKS} hangs: the others lose ${(loss * 100).toFixed(1)} %`)
  const before = await run('well, 500 a second', 0, 500)
  const after = await run('one hangs, 500 a second', 1, 500)
  say(`  their p99 at 500 a second: ${before.p99} ms before, ${after.p99} ms then`)
}
