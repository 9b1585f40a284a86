// One event for a thousand webhooks over warm connections.

import { type OutboxEntries, outboxEntriesOf } from '../src/dispatcher/match.ts'
import { passOn } from '../src/dispatcher/pass-on.ts'
import { sampleOf } from '../src/dispatcher/samples.ts'
import { systemClock as clock } from '../src/lib/clock.ts'
import { cpuEach, type DeliverBench, say } from './deliver-setup.ts'

const SUBSCRIPTIONS = 1_000
const ROUNDS = 21
/** Connections are opened in these, and code is compiled. */
const ROUNDS_COLD = 10

export async function benchFanOut(bench: DeliverBench): Promise<void> {
  const webhooks = Array.from({ length: SUBSCRIPTIONS }, (_, n) => bench.webhook('fan', n, 'ok'))
  const { sender, stop } = bench.startSender(webhooks)
  const tenant = bench.tenantOf(webhooks)
  const times: number[] = []
  const cpu = process.cpuUsage()
  await bench.received()
  for (let round = 0; round < ROUNDS; round++) {
    const told: OutboxEntries = { payloads: [], deliveries: [] }
    const occurrence = sampleOf('identification.complete', Date.now(), `fan/${round}`)
    const found = { occurrence, verdict: null, ruleId: null, botDetected: null }
    outboxEntriesOf(told, tenant, found, { payloadAt: 'p/0', nowMs: Date.now(), visitorId: 'pv_00000000000000000000' })
    await passOn({ kv: bench.kv, bus: bench.bus, handover: sender }, told, Date.now())
    let hits = 0
    let last = 0
    for (const startedAt = performance.now(); hits < SUBSCRIPTIONS && performance.now() - startedAt < 60_000; ) {
      await clock.sleep(5)
      const some = await bench.received()
      hits += some.hits
      if (some.hits > 0) last = Math.max(last, some.last)
    }
    say(`  round ${round}: ${hits} received, the last after ${last} ms`)
    if (round >= ROUNDS_COLD) times.push(hits === SUBSCRIPTIONS ? last : Number.NaN)
    await clock.sleep(1_200)
  }
  times.sort((a, b) => a - b)
  say(`  ${cpuEach(cpu, ROUNDS * SUBSCRIPTIONS)} µs of CPU each`)
  say(
    `one event to ${SUBSCRIPTIONS} webhooks: median ${times[times.length >> 1]} ms, worst ${times.at(-1)} ms to the last`,
  )
  await stop()
}
