// npm run faults -- [--cluster | --failover | --power-cut] [--cycles N] [--seed S] [--connections C] [--load-ms M] [--record]: the long form of the
// fault tests, in series of 20 injuries with a new deployment each. Ends with one line of figures, with --record in `slices.jsonl` as
// well, and with exit code 1 and the history of the first id at fault. npm run faults -- --sum adds those lines up.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { openCluster } from './cluster.ts'
import { openCutDisk, type Survived } from './cut-disk.ts'
import { KILLS, type Kind, openEmbedded, POWER_CUTS, SMALL_DISK_ENV, TROUBLES } from './embedded.ts'
import { runSeries, type Summary } from './series.ts'
import { appendSlice, type Mode, sliceOf, sumTable } from './slices.ts'
import type { Target } from './target.ts'

const CYCLES_PER_SERIES = 20
const BY_ID_MAX = 400
const DISK_MB = 3_000

const { values } = parseArgs({
  options: {
    cluster: { type: 'boolean', default: false },
    failover: { type: 'boolean', default: false },
    'power-cut': { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    sum: { type: 'boolean', default: false },
    cycles: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(testSeed()) },
    connections: { type: 'string', default: '48' },
    'load-ms': { type: 'string', default: '4000' },
  },
})
if (values.sum) {
  console.log(sumTable())
  process.exit(0)
}
const modes = [values.cluster && 'cluster', values.failover && 'failover', values['power-cut'] && 'power cut'] as const
const mode: Mode = modes.find((each) => each !== false) || 'embedded'
const cycles = Number(values.cycles)
const seed = Number(values.seed)
const connections = Number(values.connections)
const loadMsMax = Number(values['load-ms'])
if (![cycles, seed, connections, loadMsMax].every(Number.isSafeInteger) || cycles < 1 || connections < 1) {
  throw new Error('--cycles, --seed, --connections and --load-ms take whole numbers')
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0)
const most = (numbers: readonly number[]): number => numbers.reduce((max, n) => Math.max(max, n), 0)

function figures(done: readonly Summary[]): string {
  const total = (of: (summary: Summary) => number) => sum(done.map(of))
  const ready = done.flatMap(({ readyMs }) => readyMs).sort((a, b) => a - b)
  const injuries = new Map<string, number>()
  for (const summary of done) {
    for (const [name, count] of Object.entries(summary.injuries)) {
      injuries.set(name, (injuries.get(name) ?? 0) + count)
    }
  }
  return [
    `${total((s) => s.cycles)} cycles (${[...injuries].map(([name, count]) => `${count} ${name}`).join(', ')})`,
    `${total((s) => s.acked)} acknowledged ids, ${total((s) => s.listed)} listed, ${total((s) => s.readById)} reads by id`,
    `${total((s) => s.visitors)} visitors`,
    `${done.filter((s) => s.violation !== null).length} violations`,
    `${total((s) => s.counts.unknown)} unknown outcomes settled`,
    `${total((s) => s.counts.replayed)} replays`,
    `${total((s) => s.counts.refused)} refused`,
    `ready p50 ${ready[ready.length >> 1] ?? 0} ms, at most ${most(ready)} ms`,
    `partitions deciding at most ${most(done.flatMap(({ decidingMs }) => decidingMs))} ms later`,
    `seeds ${done.map((s) => s.seed).join(' ')}`,
  ].join('; ')
}

/** A disk of its own, which can be filled without harm. Needs root. */
function mountDisk(): { readonly dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'fingerpost-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', dir])
  return {
    dir,
    remove() {
      execFileSync('umount', ['-l', dir])
      rmSync(dir, { recursive: true })
    },
  }
}

/** Every third series has a disk that fills up. */
async function runEmbedded(number: number, run: (open: () => Promise<Target>) => Promise<void>): Promise<void> {
  const clockHook = new URL('./clock-hook.js', import.meta.url).href
  const others = TROUBLES.filter((kind) => kind !== 'disk full')
  const kinds: Kind[] = [...KILLS, ...others]
  const nodeArgs = ['--import', clockHook]
  if (process.getuid?.() !== 0 || number % 3 !== 2) return run(() => openEmbedded({ kinds, nodeArgs }))
  const disk = mountDisk()
  const dataDir = join(disk.dir, 'data')
  try {
    await run(() => openEmbedded({ kinds: [...kinds, 'disk full'], nodeArgs, dataDir, env: SMALL_DISK_ENV }))
  } finally {
    disk.remove()
  }
}

const powerCuts: Survived[] = []

/** What of the writes in the cache of the disk came through power cuts. */
function survivedFigures(): string {
  const total = (of: (survived: Survived) => number) => sum(powerCuts.map(of))
  const [writes, whole, torn] = [total((s) => s.writes), total((s) => s.whole), total((s) => s.torn)]
  return `${powerCuts.length} power cuts with ${writes} unflushed writes, of which ${whole} were kept and ${torn} torn`
}

async function runPowerCuts(run: (open: () => Promise<Target>) => Promise<void>): Promise<void> {
  const disk = await openCutDisk()
  const dataDir = join(disk.dir, 'data')
  const onPower = (survived: Survived) => void powerCuts.push(survived)
  try {
    await run(() => openEmbedded({ kinds: POWER_CUTS, dataDir, disk, onPower, env: SMALL_DISK_ENV }))
  } finally {
    await disk.remove()
  }
}

const done: Summary[] = []
for (let left = cycles; left > 0 && done.at(-1)?.violation == null; left -= CYCLES_PER_SERIES) {
  const series = { seed: seed + done.length, cycles: Math.min(left, CYCLES_PER_SERIES), loadMsMax }
  const print = (line: string) => console.log(line)
  console.log(`series ${done.length + 1}, seed ${series.seed}`)
  try {
    const run = async (open: () => Promise<Target>) => {
      done.push(await runSeries({ ...series, connections, byIdMax: BY_ID_MAX, print, open }))
    }
    if (mode === 'cluster') await run(() => openCluster({}))
    else if (mode === 'failover') await run(() => openCluster({ kinds: ['fail redis over', 'kill engine'] }))
    else if (mode === 'power cut') await runPowerCuts(run)
    else await runEmbedded(done.length, run)
  } finally {
    await cleanUp()
  }
  console.log(figures(done))
  if (mode === 'power cut') console.log(survivedFigures())
}
if (values.record) {
  const options = `--cycles ${cycles} --seed ${seed} --connections ${connections} --load-ms ${loadMsMax}`
  appendSlice(sliceOf(mode, `${mode === 'embedded' ? '' : `--${mode.replace(' ', '-')} `}${options}`, done, new Date()))
}
const violation = done.at(-1)?.violation
if (violation != null) {
  console.log(`VIOLATION: ${violation.id} ${violation.what}\n  ${violation.history.join('\n  ')}`)
  process.exitCode = 1
}
