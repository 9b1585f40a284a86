// A process that writes until it is killed, or until its disk is full, and prints what was acknowledged.
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { openKv } from '../../src/kv/open.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { claimDataFolder } from '../../src/lib/data-folder.ts'
import { Conflict, Full, Unavailable } from '../../src/lib/failures.ts'
import { openLog } from '../../src/log/open.ts'

const [role, dataDir = ''] = process.argv.slice(2)
const print = (line: string) => writeSync(1, `${line}\n`)
const log = () =>
  openLog({
    backend: 'lmdb',
    dataDir,
    partitions: 2,
    clock: systemClock,
    bytesMax: 1_000_000_000,
    tailBytesMax: 50_000,
  })

async function appendForEver(): Promise<void> {
  const opened = await log()
  let batch = await opened.last('events', 0)
  const writer = async () => {
    for (;;) {
      batch += 1
      const own = batch
      const of = 1 + (own % 5)
      await opened.append(
        'events',
        0,
        Array.from({ length: of }, (_, index) => Buffer.from(`${own} ${index} ${of} ${'x'.repeat(own % 3_000)}`)),
      )
      print(`${own}`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, writer))
}

async function commitForEver(): Promise<void> {
  const kv = await openKv({ backend: 'lmdb', dataDir, clock: systemClock })
  const compact = async () => {
    for (;;) {
      await kv.compact?.()
      print('compacted 0')
    }
  }
  const writer = async (name: string) => {
    const scope = `p/${name}`
    for (let at = (await kv.position(scope, 'source')) ?? 0; ; at += 1) {
      const next = at + 1
      const [done] = await kv.commit([
        {
          scope,
          guard: { source: 'source', expect: at === 0 ? null : at, next },
          put: ['a', 'b', 'c'].map((id) => ({
            key: ['c', id] as const,
            value: { next, pad: 'x'.repeat(next % 4_000) },
          })),
          add: [[['counters', 'n'], 1]],
        },
      ])
      if (!done) throw new Error('refused')
      print(`${name} ${next}`)
    }
  }
  await Promise.all([...['0', '1', '2', '3'].map(writer), ...(role === 'kv-compacting' ? [compact()] : [])])
}

async function appendUntilFull(): Promise<void> {
  let unhandled = 0
  process.on('unhandledRejection', () => {
    unhandled += 1
  })
  // Past its file size limit a process gets this signal; ignored, the write fails instead.
  process.on('SIGXFSZ', () => undefined)
  const opened = await log()
  const basis = opened.basis()
  const kept: number[] = []
  const failures: unknown[] = []
  const appendAll = async (from: number) => {
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        opened.append('events', index % 2, [Buffer.alloc(50_000, from + index)]),
      ),
    )
    for (const [index, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') kept.push((from + index) & 255)
      else failures.push(answer.reason)
    }
  }
  const stored = async () => {
    const found: number[] = []
    for (const partition of [0, 1]) {
      const limits = { recordsMax: 100_000, bytesMax: 1_000_000_000, waitMsMax: 0 }
      for (const { bytes } of await opened.read('events', partition, 0, limits)) found.push(bytes[0] as number)
    }
    return found.sort().join() === [...kept].sort().join()
  }
  for (let from = 0; failures.length < 40; from += 20) await appendAll(from)
  const consistentWhenFull = await stored()
  print('full')
  await once(process.stdin, 'data')
  const based = opened.append('events', 0, [Buffer.alloc(1, 1)], { basis })
  const takenBack = await based.catch((error: unknown) => error instanceof Conflict)
  // The fence forgot what failed: the last record that exists is the one to follow.
  await opened.append('events', 0, [Buffer.alloc(1, 1)], { expectLast: await opened.last('events', 0) })
  kept.push(1)
  const before = kept.length
  await appendAll(0)
  print(
    JSON.stringify({
      consistentWhenFull,
      consistentAfter: await stored(),
      writtenAfter: kept.length - before,
      failures: failures.every((error) => error instanceof Unavailable || error instanceof Full),
      unhandled,
      takenBack,
    }),
  )
  await opened.close()
  process.exit(0)
}

async function claim(): Promise<void> {
  const folder = { format: 1, partitions: 2, clock: systemClock, random: Math.random }
  try {
    await claimDataFolder(dataDir, folder)
    print('held')
    setInterval(() => undefined, 60_000)
  } catch (error) {
    print(error instanceof Error ? error.name : 'unknown')
  }
}

const roles: Record<string, () => Promise<void>> = {
  log: appendForEver,
  kv: commitForEver,
  'kv-compacting': commitForEver,
  full: appendUntilFull,
  claim,
}
await roles[role ?? '']?.()
