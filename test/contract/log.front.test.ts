// The log as a thread sees it whose partitions another thread writes: the common guarantees over a real channel with LMDB behind it,
// and what is its own: a tick is all or nothing, memory goes round, and records can be read before they are durable.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { Conflict, Full, Unavailable } from '../../src/lib/failures.ts'
import { openLine } from '../../src/lib/line.ts'
import { must } from '../../src/lib/must.ts'
import { openFrontLog } from '../../src/log/front.ts'
import { FIRST_GENERATION, serveFrontLog } from '../../src/log/front-writer.ts'
import type { Log, LogRecord, ReadLimits, Seq, Topic } from '../../src/log/log.ts'
import { type LogConfig, openLog } from '../../src/log/open.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { logContract } from './log.ts'

const TURNS = sized({ quick: 150, usual: 600, long: 5_000 })
const ALL: ReadLimits = { recordsMax: 1_000_000, bytesMax: 1_000_000_000, waitMsMax: 0 }
const SUBMITTED: ReadLimits = { ...ALL, submitted: true }
const OWN: readonly { readonly topic: Topic; readonly partition: number }[] = [
  { topic: 'identifications', partition: 0 },
  { topic: 'events', partition: 0 },
  { topic: 'events', partition: 1 },
]
const NOTHING_OWN: typeof OWN = []

const record = (text: string) => Buffer.from(text)
const texts = (records: readonly LogRecord[]) => records.map(({ bytes }) => Buffer.from(bytes).toString())
const outcome = async (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)
const turn = () => new Promise((resolve) => setImmediate(resolve))

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'front-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

interface Fronted {
  /** As the thread sees it. */
  readonly front: Log
  /** As the process sees it. */
  readonly behind: Log
  readonly errors: unknown[]
  close(): Promise<void>
}

interface Setup {
  readonly own?: typeof OWN
  readonly config?: Partial<LogConfig>
  /** Stands between the writer and the log. */
  readonly between?: (log: Log) => Log
}

/** A front log and its writer, wired over a channel as a process wires a shard. */
async function openFronted(
  dataDir: string,
  { own = OWN, config, between = (log) => log }: Setup = {},
): Promise<Fronted> {
  const behind = await openLog({
    backend: 'lmdb',
    dataDir,
    partitions: 2,
    clock: systemClock,
    bytesMax: 1_000_000_000,
    durability: 'relaxed',
    ...config,
  } as LogConfig)
  const errors: unknown[] = []
  const { port1, port2 } = new MessageChannel()
  const [near, far] = [port1, port2].map((port) => openLine(port, (error) => errors.push(error)))
  const writer = serveFrontLog({ line: must(far, 'a line'), log: between(behind), own: () => own })
  const generation = FIRST_GENERATION
  const front = openFrontLog({ line: must(near, 'a line'), clock: systemClock, generation, own: await writer.places() })
  return {
    front,
    behind,
    errors,
    async close() {
      await front.close()
      await writer.settled()
      await behind.close()
      port1.close()
    },
  }
}

/** The front as the contract takes it: closing it closes all that belongs to it. */
function contractWith(title: string, setup: Setup): void {
  logContract(t, title, async () => {
    const dataDir = tempDir(t)
    const open = async (): Promise<Log> => {
      const { front, close } = await openFronted(dataDir, setup)
      return { ...front, close }
    }
    let log = await open()
    return {
      log,
      reopen: async () => {
        await log.close()
        log = await open()
        t.teardown(() => log.close())
        return log
      },
    }
  })
}

contractWith('front, partitions of its own', {})
contractWith('front, partitions of others', { own: NOTHING_OWN })
contractWith('front, one of each', { own: OWN.slice(0, 2) })

/** A log that writes nothing while `gate` is closed, and fails what it is told to fail. */
function openGate() {
  let opened: (() => void)[] = []
  let isOpen = true
  let failure: Error | null = null
  const between = (log: Log): Log => ({
    ...log,
    async appendTogether(appends, opts) {
      if (!isOpen) await new Promise<void>((resolve) => opened.push(resolve))
      if (failure !== null) throw failure
      return log.appendTogether?.(appends, opts)
    },
  })
  return {
    between,
    shut: () => {
      isOpen = false
    },
    open: () => {
      isOpen = true
      for (const resolve of opened) resolve()
      opened = []
    },
    fail: (error: Error | null) => {
      failure = error
    },
  }
}

t.test('a reader of what is submitted sees a record at once, any other only when it is durable', async (t) => {
  const gate = openGate()
  const { front, close } = await openFronted(tempDir(t), { between: gate.between })
  gate.shut()
  for (const topic of ['identifications', 'events'] as const) {
    const early = front.read(topic, 0, 0, { ...SUBMITTED, waitMsMax: 30_000 })
    const late = front.read(topic, 0, 0, { ...ALL, waitMsMax: 30_000 })
    const appended = front.append(topic, 0, [record('a'), record('b')], { attached: [{ made: 'of' }] })
    if (topic === 'identifications') {
      const seen = await early
      t.same(texts(seen), ['a', 'b'])
      t.same(seen[0]?.attached, { made: 'of' })
      const again = await front.read(topic, 0, 0, SUBMITTED)
      t.notOk(
        again.some(({ attached }) => attached !== undefined),
        'what it was made of is handed out once',
      )
    }
    t.same(await front.read(topic, 0, 0, ALL), [])
    t.equal(await front.last(topic, 0), 0)
    gate.open()
    t.same(texts(await late), ['a', 'b'])
    t.same(texts(await early), ['a', 'b'])
    t.equal(await appended, 2)
    t.equal(await front.last(topic, 0), 2)
    gate.shut()
  }
  gate.open()
  await close()
})

t.test('a tick that has no room takes back everything of the thread, and the next one goes on', async (t) => {
  const { front, behind, close } = await openFronted(tempDir(t), { config: { queuedBytesMax: 300_000 } })
  await front.append('events', 0, [record('before')])
  const basis = front.basis()
  const large = Buffer.alloc(200_000, 1)
  const outcomes = await Promise.all([
    outcome(front.append('identifications', 0, [record('small')], { basis })),
    outcome(front.append('events', 0, [large], { basis })),
    outcome(front.append('events', 1, [large], { basis })),
  ])
  t.ok(
    outcomes.every((one) => one instanceof Full),
    'each of them is told that there is no room',
  )
  t.not(front.basis(), basis)
  t.ok((await outcome(front.append('events', 0, [record('stale')], { basis }))) instanceof Conflict)
  t.same(
    await Promise.all([front.last('identifications', 0), front.last('events', 0), front.last('events', 1)]),
    [0, 1, 0],
  )
  t.same(await front.read('identifications', 0, 0, SUBMITTED), [], 'nobody reads what was taken back')
  t.same(texts(await front.read('events', 0, 0, SUBMITTED)), ['before'])
  t.equal(await front.append('events', 0, [record('after')], { basis: front.basis(), expectLast: 1 }), 2)
  t.same(texts(await behind.read('events', 0, 0, ALL)), ['before', 'after'])
  t.same(await behind.read('events', 1, 0, ALL), [])
  await close()
})

t.test('another writer of one partition takes back everything of the thread, in every partition', async (t) => {
  const { front, behind, close } = await openFronted(tempDir(t))
  await front.append('events', 1, [record('own')])
  await behind.append('events', 0, [record('of another')])
  const basis = front.basis()
  const first = [
    outcome(front.append('events', 1, [record('innocent')], { basis })),
    outcome(front.append('events', 0, [record('late')], { basis })),
  ]
  await turn()
  const second = outcome(front.append('events', 1, [record('behind it')], { basis }))
  for (const one of await Promise.all([...first, second])) {
    t.ok(one instanceof Unavailable && !(one instanceof Full), String(one))
  }
  t.same(texts(await behind.read('events', 1, 0, ALL)), ['own'])
  t.same(texts(await behind.read('events', 0, 0, ALL)), ['of another'])
  t.equal(await front.last('events', 0), 1, 'the front has learned of the other')
  t.same(texts(await front.read('events', 0, 0, SUBMITTED)), ['of another'])
  t.equal(await front.append('events', 0, [record('next')], { expectLast: 1, basis: front.basis() }), 2)
  await close()
})

t.test('what was under way before a failing tick is written, what came behind it is not', async (t) => {
  const gate = openGate()
  const { front, behind, close, errors } = await openFronted(tempDir(t), { between: gate.between })
  const good = front.append('events', 0, [record('good')])
  await good
  gate.shut()
  const bad = [outcome(front.append('events', 0, [record('bad')]))]
  await turn()
  bad.push(outcome(front.append('events', 1, [record('behind')])))
  await turn()
  const gathered = outcome(front.append('identifications', 0, [record('gathered')]))
  gate.fail(new Unavailable('the disk refused'))
  gate.open()
  for (const one of await Promise.all([...bad, gathered])) t.match(one, { name: 'Unavailable' })
  gate.fail(null)
  t.same(texts(await behind.read('events', 0, 0, ALL)), ['good'])
  t.same(texts(await behind.read('events', 1, 0, ALL)), [])
  const after = await Promise.all([
    front.append('events', 0, [record('x')]),
    front.append('events', 1, [record('y')]),
    front.append('identifications', 0, [record('z')]),
  ])
  t.same(after, [2, 1, 1])
  t.same(errors, [])
  await close()
})

t.test('a log that closes under its writer fails appends and nothing else', async (t) => {
  const { front, behind, close, errors } = await openFronted(tempDir(t))
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  await front.append('events', 0, [record('a')])
  await behind.close()
  t.ok((await outcome(front.append('events', 0, [record('b')]))) instanceof Unavailable)
  t.ok((await outcome(front.read('events', 0, 0, ALL))) instanceof Unavailable)
  await turn()
  t.same([unhandled, errors], [[], []])
  await close()
})

t.test(
  'memory goes round: what is full refuses, then goes on, and what was written over is read from disk',
  async (t) => {
    const gate = openGate()
    const { front, close } = await openFronted(tempDir(t), { between: gate.between })
    const bytesOf = (n: number) => Buffer.alloc(1_000_000, n)
    let written = 0
    for (const round of [1, 2, 3]) {
      gate.shut()
      const appends: Promise<Seq>[] = []
      let refusal: unknown = null
      while (refusal === null) {
        const appending = front.append('identifications', 0, [bytesOf(written + appends.length)])
        const isRefused = await Promise.race([outcome(appending), turn().then(() => null)])
        if (isRefused === null) appends.push(appending)
        else refusal = isRefused
      }
      t.ok(refusal instanceof Full)
      t.ok(appends.length >= 30 && appends.length <= 32, `${appends.length} fit in round ${round}`)
      // The first of them have left the memory of readers, and are not durable.
      t.same(await front.read('identifications', 0, written, { ...SUBMITTED, recordsMax: 1 }), [])
      gate.open()
      const lasts = await Promise.all(appends)
      t.same(
        lasts,
        appends.map((_, index) => written + index + 1),
      )
      written += appends.length
      t.equal(await front.append('identifications', 0, [bytesOf(written)]), written + 1, 'it goes on')
      written += 1
    }
    let seen = 0
    for (const limits of [ALL, SUBMITTED]) {
      for (let after = 0; after < written; ) {
        const found = await front.read('identifications', 0, after, { ...limits, bytesMax: 4_000_000 })
        for (const { seq, bytes } of found) {
          after += 1
          if (seq !== after || Buffer.compare(bytes, bytesOf(seq - 1)) !== 0) t.fail(`record ${seq} is another one`)
          seen += 1
        }
      }
    }
    t.equal(seen, 2 * written)
    await close()
  },
)

t.test('what a reader got stays what it was while memory goes round', async (t) => {
  const { front, close } = await openFronted(tempDir(t))
  await front.append('identifications', 0, [record('kept')])
  const held = await front.read('identifications', 0, 0, SUBMITTED)
  for (let n = 0; n < 40; n++) await front.append('identifications', 0, [Buffer.alloc(1_000_000, n)])
  t.same(texts(held), ['kept'])
  await close()
})

t.test('random use with failures agrees with a small model', async (t) => {
  const seed = testSeed()
  t.comment(`SEED=${seed}`)
  const random = rng(seed)
  let failsAt = Number.POSITIVE_INFINITY
  let ticks = 0
  const between = (log: Log): Log => ({
    ...log,
    async appendTogether(appends, opts) {
      ticks += 1
      // As the disk does it: a failing write takes what waits behind it along.
      if (ticks >= failsAt) {
        const isFull = random.chance(0.5)
        await turn()
        throw isFull ? new Full('full') : new Unavailable('broken')
      }
      return log.appendTogether?.(appends, opts)
    },
  })
  const { front, behind, close, errors } = await openFronted(tempDir(t), { between })
  const nameOf = ({ topic, partition }: (typeof OWN)[number]) => `${topic}/${partition}`
  /** What is accepted by the front, and what was confirmed. */
  const taken = new Map(OWN.map((one) => [nameOf(one), [] as string[]]))
  const confirmed = new Map(OWN.map((one) => [nameOf(one), [] as string[]]))
  let pending: { readonly name: string; readonly written: string[]; readonly answer: Promise<unknown>; last: Seq }[] =
    []
  let basis = front.basis()
  let counter = 0

  async function settle(): Promise<void> {
    let isTakenBack = false
    for (const { name, written, answer, last } of pending) {
      const result = await answer
      if (typeof result === 'number') {
        if (isTakenBack) t.fail(`${name} at ${last} is confirmed behind one that was taken back`)
        if (result !== last) t.fail(`${name} is at ${result}, not at ${last}`)
        confirmed.get(name)?.push(...written)
      } else {
        if (!(result instanceof Unavailable)) t.fail(`${name}: ${result}`)
        isTakenBack = true
      }
    }
    pending = []
    failsAt = Number.POSITIVE_INFINITY
    if (isTakenBack === (front.basis() === basis))
      t.fail('the basis moves when something was taken back, and only then')
    if (isTakenBack) {
      const stale = await outcome(front.append('events', 0, [record('stale')], { basis }))
      if (!(stale instanceof Conflict)) t.fail('an append with an old basis is taken')
      basis = front.basis()
    }
    for (const one of OWN) {
      const name = nameOf(one)
      const wanted = must(confirmed.get(name), name)
      taken.set(name, [...wanted])
      const last = await front.last(one.topic, one.partition)
      if (last !== wanted.length) t.fail(`${name} is at ${last}, not at ${wanted.length}`)
    }
  }

  for (let step = 0; step < TURNS; step++) {
    if (random.chance(0.1)) failsAt = ticks + 1 + random.int(3)
    for (let count = random.int(4); count > 0; count--) {
      const one = random.pick(OWN)
      const name = nameOf(one)
      const all = must(taken.get(name), name)
      const written = Array.from({ length: 1 + random.int(4) }, () => `${counter++}:${'x'.repeat(random.int(60_000))}`)
      const isStale = random.chance(0.1)
      const fence = isStale ? { expectLast: all.length + 1 } : random.chance(0.5) ? { expectLast: all.length } : {}
      const answer = outcome(
        front.append(one.topic, one.partition, written.map(record), { ...fence, basis, patient: random.chance(0.3) }),
      )
      // A failure may have been told since: then the rest of the turn builds on what is gone.
      if (front.basis() !== basis || isStale) {
        if (!((await answer) instanceof Conflict)) t.fail(`step ${step}: a stale append is taken`)
        if (front.basis() !== basis) break
        continue
      }
      all.push(...written)
      pending.push({ name, written, answer, last: all.length })
    }
    if (random.chance(0.3)) await turn()
    if (random.chance(0.4)) {
      const one = random.pick(OWN)
      const all = must(taken.get(nameOf(one)), 'a partition')
      const after = random.int(all.length + 1)
      const limits = { recordsMax: 1 + random.int(20), bytesMax: 1 + random.int(200_000), waitMsMax: 0 }
      const found = await front.read(one.topic, one.partition, after, { ...limits, submitted: random.chance(0.5) })
      const wanted = all.slice(after, after + found.length)
      if (front.basis() === basis && texts(found).join() !== wanted.join()) t.fail(`step ${step}: read after ${after}`)
    }
    if (front.basis() !== basis || random.chance(0.3)) await settle()
  }
  await settle()
  for (const one of OWN) {
    const wanted = must(confirmed.get(nameOf(one)), 'a partition')
    for (const log of [behind, front]) {
      const found: string[] = []
      for (let after = 0; after < wanted.length; after = found.length) {
        const batch = await log.read(one.topic, one.partition, after, ALL)
        if (batch.length === 0) break
        found.push(...texts(batch))
      }
      t.ok(found.join() === wanted.join(), `${nameOf(one)}: ${found.length} of ${wanted.length}`)
    }
  }
  t.same(errors, [])
  await close()
})
