// What deciding costs the thread that does it: identifications of the `ingest` benchmark go through the turns of one thread in
// this process, all partitions in it, with what it has to load in a Map. Microseconds of CPU per identification.
// Usage: npm run bench -- worker [--devices 20000] [--visits 60000] [--batch 32] [--rounds 3]

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { hash32, homePartition, makeRequestId } from '../src/domain/ids.ts'
import type { Load } from '../src/engine/asking.ts'
import { createDecider, createPartitionHost } from '../src/engine/decider.ts'
import type { LoadedEntry } from '../src/engine/state.ts'
import { openParsers } from '../src/identity/parsers.ts'
import { hardwareKey } from '../src/identity/routing.ts'
import { verifyToken } from '../src/identity/token.ts'
import { must } from '../src/lib/must.ts'
import { encodeIdentification } from '../src/records/identification.ts'
import { VELOCITY } from '../src/records/partitions.ts'
import { encodeSnapshot } from '../src/rules/snapshot.ts'
import { rng } from '../test/helpers/rng.ts'
import { ENV, WORKSPACE } from './identity/record.ts'
import { makeDevice, makeRule, TOKENLESS_SHARE } from './population.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    devices: { type: 'string', default: '20000' },
    visits: { type: 'string', default: '60000' },
    batch: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '3' },
  },
})
const devices = Number(options.devices)
const visits = Number(options.visits)
const batchSize = Number(options.batch)

const PARTITIONS = 4
const CHECKPOINT_EVENTS = 1_000

const { int, float } = rng(1)
const parsers = openParsers()
const population = Array.from({ length: devices }, (_, i) => {
  const { body, userAgent, ip } = makeDevice(i + 1)
  return {
    body: JSON.stringify(body).slice(1),
    key: hardwareKey(body, { 'user-agent': userAgent }, userAgent, parsers),
    userAgent,
    ip,
  }
})
const tokens: string[] = []

const rules = Array.from({ length: 50 }, (_, i) => ({
  ...makeRule(i),
  id: `rul_${String(i).padStart(20, '0')}`,
  priority: 10 + i,
}))
const snapshot = encodeSnapshot({ workspace: WORKSPACE, env: ENV, revision: 1, rules } as never)

const stored = new Map<string, unknown>()
const load: Load = async (wanted) =>
  wanted.flatMap(({ kind, id }): LoadedEntry[] =>
    kind === 'ruleset' ? [] : [{ kind, id, value: stored.get(`${kind} ${id}`) ?? null }],
  )

const place = createPartitionHost({
  partitions: PARTITIONS,
  random: randomBytes,
  monotonic: () => performance.now(),
  visitorsMax: 50_000,
  now: Date.now,
})
place.take({ snapshots: [snapshot], lists: [] })
const decider = createDecider(async (_task, turn) => turn(place))

interface Waiting {
  readonly device: number
  readonly seq: number
  readonly bytes: Uint8Array
}
const queues: Waiting[][] = Array.from({ length: PARTITIONS }, () => [])
let seq = 0
const since: number[] = queues.map(() => 0)

function accept(device: number, token: string | null): void {
  const { body, key, userAgent, ip } = must(population[device], 'a device')
  const claims = token === null ? null : verifyToken(WORKSPACE.tokenSecret, WORKSPACE.id, ENV, token)
  const partition =
    claims === null ? hash32(`${WORKSPACE.id}/${ENV}/${key}`) % PARTITIONS : homePartition(claims.visitorId, PARTITIONS)
  const now = Date.now()
  const text = `{"storageToken":${JSON.stringify(token)},"nonce":"n${String(seq).padStart(15, '0')}",${body}`
  const record = encodeIdentification(
    {
      requestId: makeRequestId(now, randomBytes),
      acceptedAt: now,
      workspace: WORKSPACE.id,
      env: ENV,
      keyKind: 'public',
      ip,
      headers: { 'user-agent': userAgent },
      token: claims,
      tokenForged: false,
      replyTo: 'bench',
    },
    Buffer.from(text),
  )
  must(queues[partition], 'a partition').push({ device, seq: ++seq, bytes: record })
}

async function decide(partition: number): Promise<void> {
  const batch = must(queues[partition], 'a partition').splice(0, batchSize)
  const { decided } = await decider.decide(partition, batch, [], load)
  if (decided.dead.length > 0) throw new Error(`not decided: ${decided.dead[0]?.reason}`)
  decided.replies.forEach(({ body }, i) => {
    tokens[must(batch[i], 'a visit').device] = (JSON.parse(body) as { storageToken: string }).storageToken
  })
  since[partition] = (since[partition] as number) + batch.length
  if ((since[partition] as number) < CHECKPOINT_EVENTS) return
  since[partition] = 0
  const { dirty } = await decider.checkpoint(partition)
  for (const { kind, id, value } of dirty) {
    stored.set(`${kind} ${id}`, kind === VELOCITY ? [{ partition, seq: batch.at(-1)?.seq ?? 0, packed: value }] : value)
  }
}

/** Accepts all, then decides all: only the second half is measured. */
async function round(
  count: number,
  next: (i: number) => readonly [device: number, token: string | null],
): Promise<number> {
  for (let i = 0; i < count; i++) accept(...next(i))
  const { user, system } = process.cpuUsage()
  for (let left = true; left; ) {
    left = false
    for (let partition = 0; partition < PARTITIONS; partition++) {
      if (must(queues[partition], 'a partition').length === 0) continue
      left = true
      await decide(partition)
    }
  }
  const spent = process.cpuUsage({ user, system })
  return (spent.user + spent.system) / count
}

for (let partition = 0; partition < PARTITIONS; partition++) await decider.open(partition, [])
console.log(`first visits: ${(await round(devices, (i) => [i, null])).toFixed(0)} us`)
for (let i = 0; i < Number(options.rounds); i++) {
  const spent = await round(visits, () => {
    const device = int(devices)
    return [device, float() < TOKENLESS_SHARE ? null : must(tokens[device], 'a token')]
  })
  console.log(`later visits: ${spent.toFixed(0)} us`)
}
