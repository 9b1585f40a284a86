// What every backend of the log guarantees. Gaps in seq are legal, so no test expects an exact number.
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import {
  APPEND_BYTES_MAX,
  APPEND_RECORDS_MAX,
  type Log,
  type LogRecord,
  RECORD_BYTES_MAX,
  type ReadLimits,
  type Seq,
  type Topic,
} from '../../src/log/log.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'

export interface OpenedLog {
  /** A new, empty log with at least two partitions. */
  readonly log: Log
  /** Closes the log and opens the same data again. */
  readonly reopen?: () => Promise<Log>
}

const FOLLOWED = sized({ quick: 300, usual: 500, long: 1_500 })
const SPREAD = sized({ quick: 100, usual: 150, long: 300 })
const STEPS = sized({ quick: 60, usual: 100, long: 250 })
const ALL: ReadLimits = { recordsMax: 10_000, bytesMax: 100_000_000, waitMsMax: 0 }
const WAIT: ReadLimits = { ...ALL, waitMsMax: 30_000 }

const record = (text: string) => Buffer.from(text)
const texts = (records: readonly LogRecord[]) => records.map(({ bytes }) => Buffer.from(bytes).toString())
const outcome = async (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error)

async function readAll(log: Log, topic: Topic, partition: number, after: Seq = 0): Promise<LogRecord[]> {
  const found: LogRecord[] = []
  for (let from = after; ; from = must(found.at(-1)).seq) {
    const batch = await log.read(topic, partition, from, ALL)
    if (batch.length === 0) return found
    found.push(...batch)
  }
}

export function logContract(t: Test, name: string, open: () => Promise<OpenedLog>): void {
  t.test(`log contract: ${name}`, async (t) => {
    const guarantee = (title: string, check: (t: Test, opened: OpenedLog) => Promise<void>) =>
      t.test(title, async (t) => {
        const opened = await open()
        t.teardown(() => opened.log.close())
        await check(t, opened)
      })

    await guarantee('records come back in order, byte for byte, from any position', async (t, { log }) => {
      t.equal(await log.last('events', 0), 0)
      const contents = [record(''), record('a'), Buffer.from([0, 255, 0]), Buffer.alloc(200_000, 7), record('z')]
      const seqs: Seq[] = []
      for (const bytes of contents) seqs.push(await log.append('events', 0, [bytes]))
      t.same(
        (await readAll(log, 'events', 0)).map(({ bytes }) => Buffer.from(bytes)),
        contents,
      )
      t.same(
        (await readAll(log, 'events', 0, must(seqs[1]))).map(({ seq }) => seq),
        seqs.slice(2),
      )
      t.equal(await log.last('events', 0), seqs.at(-1))
      t.same(await readAll(log, 'events', 1), [], 'another partition sees nothing')
      t.same(await readAll(log, 'identifications', 0), [], 'another topic sees nothing')
    })

    await guarantee('an append keeps its own copy of the bytes', async (t, { log }) => {
      const bytes = record('before')
      const done = log.append('events', 0, [bytes])
      bytes.fill(0)
      await done
      t.same(texts(await readAll(log, 'events', 0)), ['before'])
    })

    await guarantee('appends of many callers keep call order, and each stays together', async (t, { log }) => {
      const calls = Array.from({ length: 60 }, (_, call) =>
        log.append(
          'events',
          call % 2,
          Array.from({ length: 1 + (call % 7) }, (_, index) => record(`${call}.${index}`)),
        ),
      )
      const lasts = await Promise.all(calls)
      for (const partition of [0, 1]) {
        const found = await readAll(log, 'events', partition)
        const expected = lasts.flatMap((_, call) =>
          call % 2 === partition ? Array.from({ length: 1 + (call % 7) }, (_, index) => `${call}.${index}`) : [],
        )
        t.same(texts(found), expected)
        const seqs = found.map(({ seq }) => seq)
        t.same(
          seqs,
          [...new Set(seqs)].sort((a, b) => a - b),
          'seqs increase',
        )
      }
    })

    await guarantee('a stale writer is refused and writes nothing', async (t, { log }) => {
      const first = await log.append('events', 0, [record('first')], { expectLast: 0 })
      t.ok((await outcome(log.append('events', 0, [record('x')], { expectLast: 0 }))) instanceof Conflict)
      const second = await log.append('events', 0, [record('second')], { expectLast: first })
      t.ok((await outcome(log.append('events', 0, [record('x')], { expectLast: first }))) instanceof Conflict)
      t.ok((await outcome(log.append('events', 0, [record('x')], { expectLast: second + 1 }))) instanceof Conflict)
      t.same(texts(await readAll(log, 'events', 0)), ['first', 'second'])
      await log.append('events', 1, [record('elsewhere')], { expectLast: 0 })
    })

    await guarantee('of two fenced writers at one position exactly one wins', async (t, { log }) => {
      let last = 0
      for (let round = 0; round < 10; round += 1) {
        const outcomes = await Promise.all(
          ['a', 'b', 'c'].map((who) =>
            outcome(log.append('events', 0, [record(`${round}${who}`)], { expectLast: last })),
          ),
        )
        const winners = outcomes.filter((result) => typeof result === 'number')
        t.equal(winners.length, 1)
        t.equal(outcomes.filter((result) => result instanceof Conflict).length, 2)
        last = must(winners[0]) as number
      }
      t.equal((await readAll(log, 'events', 0)).length, 10)
    })

    await guarantee('an unknown outcome is resolved by reading the tail', async (t, { log }) => {
      const before = await log.append('events', 0, [record('known')])
      const forgotten = outcome(log.append('events', 0, [record('mine')], { expectLast: before }))
      const tail = await log.read('events', 0, before, WAIT)
      t.same(texts(tail), ['mine'], 'it is readable once it is durable')
      t.equal(await forgotten, must(tail[0]).seq)
      const again = await outcome(log.append('events', 0, [record('mine')], { expectLast: before }))
      t.ok(again instanceof Conflict, 'the same append does not happen twice')
    })

    await guarantee('the same bytes twice are two records', async (t, { log }) => {
      await log.append('events', 0, [record('same'), record('same')])
      await log.append('events', 0, [record('same')])
      t.same(texts(await readAll(log, 'events', 0)), ['same', 'same', 'same'])
    })

    await guarantee('a reader right behind the writer misses nothing', async (t, { log }) => {
      const total = FOLLOWED
      const seen: string[] = []
      const reading = (async () => {
        let after = 0
        while (seen.length < total) {
          const batch = await log.read('events', 0, after, { recordsMax: 64, bytesMax: 5_000, waitMsMax: 30_000 })
          if (batch.length === 0) return
          seen.push(...texts(batch))
          after = must(batch.at(-1)).seq
        }
      })()
      const appends: Promise<Seq>[] = []
      for (let count = 0; count < total; count += 1) {
        appends.push(log.append('events', 0, [record(`${count}`)]))
        if (count % 50 === 0) await must(appends.at(-1))
      }
      await Promise.all(appends)
      await reading
      t.same(
        seen,
        Array.from({ length: total }, (_, count) => `${count}`),
      )
    })

    await guarantee('a read keeps its limits and always makes progress', async (t, { log }) => {
      await log.append('events', 0, [record('12345'), record('67890'), record('abcde')])
      const take = async (limits: Partial<ReadLimits>) => texts(await log.read('events', 0, 0, { ...ALL, ...limits }))
      t.same(await take({ recordsMax: 2 }), ['12345', '67890'])
      t.same(await take({ bytesMax: 10 }), ['12345', '67890'])
      t.same(await take({ bytesMax: 14 }), ['12345', '67890'])
      t.same(await take({ bytesMax: 1 }), ['12345'])
    })

    await guarantee('a waiting read wakes on an append, its time limit and its signal', async (t, { log }) => {
      const waiting = log.read('events', 0, 0, WAIT)
      await log.append('events', 1, [record('elsewhere')])
      await log.append('events', 0, [record('woken')])
      t.same(texts(await waiting), ['woken'])
      const last = await log.last('events', 0)
      const started = performance.now()
      t.same(await log.read('events', 0, last, { ...ALL, waitMsMax: 60 }), [])
      t.ok(performance.now() - started >= 50, 'it waited')
      const abort = new AbortController()
      const aborted = log.read('events', 0, last, { ...ALL, waitMsMax: 60_000 }, abort.signal)
      abort.abort()
      t.same(await aborted, [])
      t.same(await log.read('events', 0, last, { ...ALL, waitMsMax: 60_000 }, AbortSignal.abort()), [])
    })

    await guarantee('a trim removes what it names and the last seq stays', async (t, opened) => {
      const { log } = opened
      const seqs: Seq[] = []
      for (let count = 0; count < 10; count += 1) seqs.push(await log.append('events', 0, [record(`${count}`)]))
      await log.append('events', 1, [record('kept')])
      await log.trim('events', 0, must(seqs[3]))
      t.same(texts(await readAll(log, 'events', 0)), ['4', '5', '6', '7', '8', '9'])
      t.equal(await log.at('events', 0, must(seqs[3])), null)
      t.same(Buffer.from(must(await log.at('events', 0, must(seqs[4]))).bytes).toString(), '4')
      await log.trim('events', 0, must(seqs[1]))
      t.equal((await readAll(log, 'events', 0)).length, 6, 'an older trim brings nothing back and takes nothing')
      await log.trim('events', 0, must(seqs[9]) + 1_000)
      t.same(await readAll(log, 'events', 0), [])
      t.equal(await log.last('events', 0), seqs[9])
      t.same(texts(await readAll(log, 'events', 1)), ['kept'])
      t.ok((await outcome(log.append('events', 0, [record('x')], { expectLast: 0 }))) instanceof Conflict)
      const next = await log.append('events', 0, [record('next')], { expectLast: must(seqs[9]) })
      t.ok(next > must(seqs[9]))
      t.same(texts(await readAll(log, 'events', 0)), ['next'], 'a trim beyond the end takes no later record')
    })

    await guarantee('a single record is found by its seq only', async (t, { log }) => {
      t.equal(await log.at('events', 0, 1), null)
      const seq = await log.append('events', 0, [record('one')])
      t.same(texts([must(await log.at('events', 0, seq))]), ['one'])
      t.equal(await log.at('events', 0, seq + 1), null)
      t.equal(await log.at('events', 1, seq), null)
      t.equal(await log.at('events', 0, 0), null)
    })

    await guarantee('limits are enforced and leave nothing behind', async (t, { log }) => {
      const largest = Buffer.alloc(RECORD_BYTES_MAX, 1)
      for (const records of [
        [],
        [Buffer.alloc(RECORD_BYTES_MAX + 1)],
        [record('fine'), Buffer.alloc(RECORD_BYTES_MAX + 1)],
        Array.from({ length: APPEND_RECORDS_MAX + 1 }, () => record('x')),
        [Buffer.alloc(APPEND_BYTES_MAX - 10), Buffer.alloc(11)],
      ]) {
        t.ok((await outcome(log.append('events', 0, records))) instanceof RangeError)
      }
      t.equal(await log.last('events', 0), 0)
      await log.append('events', 0, [largest])
      const most = Math.floor(APPEND_BYTES_MAX / APPEND_RECORDS_MAX)
      await log.append(
        'events',
        1,
        Array.from({ length: APPEND_RECORDS_MAX }, () => Buffer.alloc(most, 1)),
      )
      t.equal(must((await readAll(log, 'events', 0))[0]).bytes.length, RECORD_BYTES_MAX)
      t.equal((await readAll(log, 'events', 1)).length, APPEND_RECORDS_MAX)
      t.ok((await outcome(log.append('changes', 1, [record('x')]))) instanceof RangeError, 'no such partition')
    })

    await guarantee('usage grows with what is appended', async (t, { log }) => {
      const before = await log.usage()
      await log.append('events', 0, [randomBytes(500_000)])
      const after = await log.usage()
      t.ok(after.bytes >= before.bytes + 250_000, `${before.bytes} to ${after.bytes}`)
      t.ok(after.bytesMax > after.bytes)
    })

    await guarantee('after close every call fails and waiting readers return', async (t, { log }) => {
      const waiting = log.read('events', 0, 0, { ...ALL, waitMsMax: 60_000 })
      const inFlight = log.append('events', 1, [record('taken')])
      await log.close()
      t.same(await waiting, [])
      t.type(await inFlight, 'number', 'what was taken is written')
      t.ok((await outcome(log.append('events', 0, [record('x')]))) instanceof Unavailable)
      t.ok((await outcome(log.read('events', 0, 0, ALL))) instanceof Unavailable)
      await log.close()
    })

    await guarantee('what was acknowledged is there after reopening', async (t, opened) => {
      if (!opened.reopen) return
      const seqs: Seq[] = []
      for (let count = 0; count < 5; count += 1) seqs.push(await opened.log.append('events', 0, [record(`${count}`)]))
      await opened.log.append('dead', 0, [record('other topic')])
      await opened.log.trim('events', 0, must(seqs[1]))
      let log = await opened.reopen()
      t.same(texts(await readAll(log, 'events', 0)), ['2', '3', '4'])
      t.equal(await log.last('events', 0), seqs[4])
      t.same(texts(await readAll(log, 'dead', 0)), ['other topic'])
      await log.append('events', 0, [record('5')], { expectLast: must(seqs[4]) })
      const last = await log.last('events', 0)
      await log.trim('events', 0, last)
      log = await opened.reopen()
      t.equal(await log.last('events', 0), last, 'the last seq outlives its record')
      t.same(await readAll(log, 'events', 0), [])
    })

    await guarantee('records of one append are trimmed one by one', async (t, { log }) => {
      await log.append('events', 0, ['a', 'b', 'c'].map(record))
      await log.append('events', 0, ['d', 'e'].map(record))
      const [first, second, , fourth] = (await readAll(log, 'events', 0)).map(({ seq }) => seq) as [Seq, Seq, Seq, Seq]
      await log.trim('events', 0, second)
      t.same(texts(await readAll(log, 'events', 0)), ['c', 'd', 'e'])
      t.equal(await log.at('events', 0, first), null)
      t.equal(await log.at('events', 0, second), null)
      await log.trim('events', 0, fourth)
      t.same(texts(await readAll(log, 'events', 0, first)), ['e'])
    })

    await guarantee('readers at different positions each get everything', async (t, { log }) => {
      const total = SPREAD
      const expected = Array.from({ length: total }, (_, count) => `${count}`)
      const follow = async (recordsMax: number, pauseMs: number) => {
        const seen: string[] = []
        for (let after = 0; seen.length < total; ) {
          const batch = await log.read('events', 0, after, { ...WAIT, recordsMax })
          if (batch.length === 0) break
          seen.push(...texts(batch))
          after = must(batch.at(-1)).seq
          await new Promise((resolve) => setTimeout(resolve, pauseMs))
        }
        return seen
      }
      const early = [follow(1_000, 0), follow(7, 1), follow(64, 20)]
      for (let count = 0; count < total; count += 1) {
        const done = log.append('events', 0, [record(`${count}`)])
        if (count % 10 === 0) await done
      }
      for (const seen of await Promise.all([...early, follow(50, 0), follow(3, 0)])) t.same(seen, expected)
    })

    await guarantee('what is durable is never missing from a read that does not wait', async (t, { log }) => {
      for (let round = 0, after = 0; round < 40; round += 1) {
        const seq = await log.append('events', 0, [record(`${round}`)])
        const found = await log.read('events', 0, after, ALL)
        if (found.at(-1)?.seq !== seq) t.fail(`round ${round}: ${seq} is not there`)
        if (round % 3 === 0) t.same(await log.read('events', 0, seq, ALL), [])
        after = seq
      }
    })

    await guarantee('random use agrees with a small model', async (t, opened) => {
      const seed = testSeed()
      t.comment(`SEED=${seed}`)
      const random = rng(seed)
      let log = opened.log
      const model = [0, 1].map(() => ({
        records: [] as { seq: Seq; text: string; append: Seq }[],
        trimmed: [] as { seq: Seq; text: string; append: Seq }[],
        last: 0,
      }))
      let counter = 0
      for (let step = 0; step < STEPS; step += 1) {
        const partition = random.int(2)
        const side = must(model[partition])
        const action = random.int(10)
        if (action < 4) {
          const written = Array.from(
            { length: 1 + random.int(5) },
            () => `${counter++}:${'x'.repeat(random.int(3_000))}`,
          )
          const expectLast = random.chance(0.5) ? side.last : side.last + 1 + random.int(3)
          const fenced = random.chance(0.6)
          const result = await outcome(
            log.append('events', partition, written.map(record), fenced ? { expectLast } : {}),
          )
          if (fenced && expectLast !== side.last) {
            t.ok(result instanceof Conflict, 'stale append refused')
            continue
          }
          const stored = await readAll(log, 'events', partition, side.last)
          if (stored.at(-1)?.seq !== result) t.fail('the answer is not the seq of the last record')
          const append = result as Seq
          for (const [index, { seq }] of stored.entries()) {
            side.records.push({ seq, text: must(written[index]), append })
          }
          side.last = append
        } else if (action < 8) {
          const after = side.records.length > 0 ? random.pick(side.records).seq - random.int(2) : random.int(5)
          const limits = { recordsMax: 1 + random.int(8), bytesMax: 1 + random.int(9_000), waitMsMax: 0 }
          const expected: string[] = []
          let bytes = 0
          for (const { seq, text } of side.records) {
            if (seq <= after) continue
            bytes += text.length
            if (expected.length >= limits.recordsMax || (expected.length > 0 && bytes > limits.bytesMax)) break
            expected.push(text)
          }
          const found = texts(await log.read('events', partition, after, limits))
          const isShort = expected.length > 0 && found.length === 0
          if (isShort || found.join() !== expected.slice(0, found.length).join()) {
            t.same(found, expected, `step ${step}: read after ${after}`)
          }
        } else if (action < 9) {
          const upTo = side.records.length > 0 ? random.pick(side.records).seq : side.last
          await log.trim('events', partition, upTo)
          side.trimmed.push(...side.records.filter(({ seq }) => seq <= upTo))
          side.records = side.records.filter(({ seq }) => seq > upTo)
        } else if (opened.reopen && random.chance(0.3)) {
          log = await opened.reopen()
          for (const [number, { trimmed, records }] of model.entries()) {
            const oldest = (await log.read('events', number, 0, { ...ALL, recordsMax: 1 }))[0]?.seq
            // Those of an append that also holds later records may come back, all that are behind the first one.
            const back = trimmed.filter(
              ({ seq, append }) => seq >= (oldest ?? seq + 1) && append === records[0]?.append,
            )
            records.unshift(...back)
            trimmed.length = 0
          }
        }
      }
      for (const partition of [0, 1]) {
        const side = must(model[partition])
        t.same(
          texts(await readAll(log, 'events', partition)),
          side.records.map(({ text }) => text),
        )
        t.equal(await log.last('events', partition), side.last)
      }
    })
  })
}
