// The promise of the product on a machine whose power fails: what was answered was flushed before. The real process on a real file
// system, on a disk that forgets what no flush followed. The long form: npm run faults -- --power-cut --cycles 60.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { type CutDiskOptions, missingForCutDisk, openCutDisk, readCache, type Survived, surviving } from './cut-disk.ts'
import { openEmbedded, POWER_CUTS, SMALL_DISK_ENV } from './embedded.ts'
import { runSeries } from './series.ts'

const SIZE = sized({
  usual: { cycles: 3, connections: 8, byIdMax: 60, loadMsMax: 1_500, answersMin: 60 },
  long: { cycles: 12, connections: 24, byIdMax: 200, loadMsMax: 4_000, answersMin: 200 },
})
const CONTROL = {
  cycles: 3,
  connections: 8,
  byIdMax: 60,
  loadMsMax: 500,
  answersMin: 60,
  atAnswer: true,
  checkEvery: true,
}

t.setTimeout(500_000)
t.teardown(cleanUp)

async function cutPowerUnderLoad(
  t: Test,
  size: typeof SIZE & Partial<typeof CONTROL>,
  { disk: diskOptions, env }: { readonly disk?: CutDiskOptions; readonly env?: Readonly<Record<string, string>> } = {},
) {
  const seed = testSeed()
  const disk = await openCutDisk(diskOptions)
  t.teardown(() => disk.remove())
  const cuts: Survived[] = []
  const summary = await runSeries({
    seed,
    ...size,
    open: () =>
      openEmbedded({
        kinds: POWER_CUTS,
        dataDir: join(disk.dir, 'data'),
        disk,
        onPower: (survived) => cuts.push(survived),
        env: { ...SMALL_DISK_ENV, ...env },
      }),
    print: (line) => t.comment(line),
  })
  t.comment(`seed ${seed}; ${JSON.stringify(cuts)}`)
  return summary
}

t.test('of what no flush followed a disk keeps nothing, a beginning, or any of its sectors', (t) => {
  const header = (at: number, bytes: number) => {
    const written = Buffer.alloc(12)
    written.writeBigUInt64LE(BigInt(at), 0)
    written.writeUInt32LE(bytes, 8)
    return written
  }
  const two = Buffer.concat([header(4_096, 1_024), Buffer.alloc(1_024, 1), header(2 ** 40, 512), Buffer.alloc(512, 2)])
  const writes = readCache(two)
  t.same(
    writes.map(({ at, bytes }) => [at, bytes.length, bytes[0]]),
    [
      [4_096, 1_024, 1],
      [2 ** 40, 512, 2],
    ],
  )
  t.equal(readCache(two.subarray(0, 1_040)).length, 1, 'the last one was never whole')
  const random = rng(1)
  const seen = new Set<string>()
  for (let n = 0; n < 1_000; n += 1) {
    const sectors: number[] = []
    const { how } = surviving(random, writes, ({ at, bytes }) => {
      for (let from = 0; from < bytes.length; from += 512) sectors.push(at + from)
    })
    seen.add(`${how} ${sectors.join()}`)
  }
  const [one, next, far] = [4_096, 4_608, 2 ** 40]
  for (const expected of [
    'none ',
    'first ',
    `first ${one}`,
    `first ${one},${next}`,
    `any ${next},${far}`,
    `any ${far}`,
  ]) {
    t.ok(seen.has(expected), expected)
  }
  t.equal(seen.has(`first ${far}`), false, 'a beginning has no gaps but in the write that was cut')
  t.end()
})

const lacking = missingForCutDisk()
// The run tells it at its end.
if (lacking !== null) t.comment(`NOT RUN: ${lacking}`)
else {
  t.test('what was accepted survives power cuts under load, exactly once', async (t) => {
    const { violation, counts, ...figures } = await cutPowerUnderLoad(t, SIZE)
    t.comment(JSON.stringify({ ...figures, counts }))
    t.equal(violation, null, 'every promise is kept')
    t.equal(figures.cycles, SIZE.cycles)
    t.equal(figures.listed, figures.acked, 'every id that a client was told of is listed, and no other')
    t.ok(figures.acked >= SIZE.cycles * SIZE.answersMin, 'there was a load')
  })

  t.test('a disk that acknowledges flushes and forgets them is caught losing', async (t) => {
    const { violation } = await cutPowerUnderLoad(t, CONTROL, { disk: { flushes: 'acknowledged' } })
    t.comment(`${violation?.id} ${violation?.what}`)
    t.ok(violation !== null, 'the checker names an id')
  })
}
