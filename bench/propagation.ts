// How long a change of a rule takes until every evaluator decides by it: creates, updates and deletes one after the other in an
// environment full of rules, while identifications come in. `npm run bench -- propagation [changes] [rules] [identifications per
// second] [ms between changes]`; without a pause the changes alone keep the evaluators compiling.

import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDevice } from '../test/helpers/bodies.ts'
import { clientOf } from '../test/helpers/client.ts'
import { rng } from '../test/helpers/rng.ts'
import { cleanUp, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { atShare } from './measure.ts'

const CHANGES = Number(process.argv[3] ?? 300)
/** One place is left for the rule that comes and goes. */
const RULES = Number(process.argv[4] ?? 999)
const PER_SECOND = Number(process.argv[5] ?? 200)
const PAUSE_MS = Number(process.argv[6] ?? 100)
const GOAL_MS = 100
const AT_ONCE = 8
const TICK_MS = 10
const FLUSH_EVERY_MS = 50

const r = rng(1)
const server = await startServer({ asShipped: true })
const client = clientOf(server)

const ruleBody = (i: number) => ({
  name: `Rule ${i}`,
  status: 'live',
  conditions: {
    operator: 'AND',
    rules: [
      { field: 'scores.suspect', operator: 'gte', value: r.int(10_000) / 100 },
      { field: 'ip.country', operator: 'in', value: ['CZ', 'DE', 'JP', 'US'].slice(r.int(4)) },
      { field: 'url.path', operator: 'contains', value: `x${r.int(1_000)}` },
    ],
  },
  action: { verdict: r.pick(['allow', 'challenge', 'block']) },
})

async function ask(method: string, path: string, body?: unknown) {
  const startedAt = performance.now()
  const answer = await client.send(method, path, body === undefined ? {} : { body })
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
  return { ...answer.body, wallMs: performance.now() - startedAt }
}

const ids: string[] = []
const numbers = Array.from({ length: RULES }, (_, i) => i)
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let i = numbers.pop(); i !== undefined; i = numbers.pop())
      ids.push((await ask('POST', '/v1/rules', ruleBody(i))).id)
  }),
)

let identified = 0
let running = true
const devices = Array.from({ length: 200 }, (_, i) => makeDevice(r, i))
async function load(): Promise<void> {
  while (running) {
    const due = performance.now() + (1_000 * AT_ONCE) / PER_SECOND
    const { request, ip } = r.pick(devices)
    const { body, headers, userAgent } = request
    const answer = await client.identify({ ...body, ip, userAgent, headers })
    if (answer.status === 200) identified++
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
  }
}
const loads = Array.from({ length: AT_ONCE }, load)

/** How late a timer of this process is: what the machine itself adds to every wait. */
const lateness: number[] = []
async function watchLateness(): Promise<void> {
  while (running) {
    const due = performance.now() + TICK_MS
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    lateness.push(performance.now() - due)
  }
}
const watching = watchLateness()

/** What one flush to this disk takes meanwhile: a change waits for two of them, one after the other. */
const flushes: number[] = []
async function watchDisk(): Promise<void> {
  const file = await open(join(temporaryFolder(), 'flushed'), 'w')
  while (running) {
    const from = performance.now()
    await file.write(Buffer.alloc(4_096), 0, 4_096, 0)
    await file.datasync()
    flushes.push(performance.now() - from)
    await new Promise((resolve) => setTimeout(resolve, FLUSH_EVERY_MS))
  }
  await file.close()
}
const flushing = watchDisk()

const figures: { propagationMs: number; wallMs: number; propagated: boolean }[] = []
const startedAt = performance.now()
for (let i = 0; i < CHANGES; i++) {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  if (i % 3 === 0) {
    const made = await ask('POST', '/v1/rules', ruleBody(RULES))
    figures.push(made)
    await ask('DELETE', `/v1/rules/${made.id}`)
  } else figures.push(await ask('PUT', `/v1/rules/${r.pick(ids)}`, { conditions: ruleBody(0).conditions }))
}
const seconds = (performance.now() - startedAt) / 1_000
running = false
await Promise.all([...loads, watching, flushing])
await server.stop()
await cleanUp()

const propagation = figures.map(({ propagationMs }) => propagationMs).sort((a, b) => a - b)
const wall = figures.map(({ wallMs }) => wallMs).sort((a, b) => a - b)
lateness.sort((a, b) => a - b)
flushes.sort((a, b) => a - b)
const p99 = atShare(propagation, 0.99) ?? 0
const missed = figures.filter(({ propagated }) => !propagated).length
console.log(
  `${RULES} rules, ${figures.length} changes in ${seconds.toFixed(1)} s under ${(identified / seconds).toFixed(0)} identifications per second: ` +
    `propagationMs p50 ${atShare(propagation, 0.5)}, p99 ${p99}, max ${propagation.at(-1)}; ` +
    `answer p50 ${atShare(wall, 0.5)?.toFixed(0)} ms, p99 ${atShare(wall, 0.99)?.toFixed(0)} ms; ${missed} not propagated; timers late by p50 ${atShare(lateness, 0.5)?.toFixed(0)}, p99 ${atShare(lateness, 0.99)?.toFixed(0)} ms, a flush takes p50 ${atShare(flushes, 0.5)?.toFixed(0)}, p99 ${atShare(flushes, 0.99)?.toFixed(0)} ms; goal p99 below ${GOAL_MS}`,
)
if (p99 >= GOAL_MS || missed > 0) process.exitCode = 1
