// npm run test:soak -- [--runs N] [--quick] [--spin] [--freeze] [PATTERN...]: runs the tests again and again, to find those that
// only pass on a machine that has nothing else to do. `--spin` keeps a process on each core busy meanwhile, `--freeze` stops the
// whole tree of processes for 0.05 to 1.2 s every few seconds. Prints how long each run took and how it ended.
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FREEZE_MS = [50, 1_200]
const BETWEEN_MS = [2_000, 6_000]

const between = ([min, max]) => min + Math.random() * (max - min)

/** State and parent of every process, by pid. */
function processes() {
  const found = new Map()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [state, parent] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1).split(' ')
      found.set(Number(pid), { state, parent: Number(parent) })
    } catch {
      // It has ended meanwhile.
    }
  }
  return found
}

function treeOf(root) {
  const all = processes()
  const tree = new Set([root])
  for (let before = 0; before < tree.size; ) {
    before = tree.size
    for (const [pid, { parent }] of all) if (tree.has(parent)) tree.add(pid)
  }
  return [...tree].map((pid) => ({ pid, state: all.get(pid)?.state ?? 'X' }))
}

const signal = (pid, name) => {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

/** Stops what runs below `root`, and lets exactly that go on: a test may have stopped some of it for its own reasons. */
async function freeze(root) {
  const stopped = new Set()
  for (let more = true; more; ) {
    more = false
    for (const { pid, state } of treeOf(root)) {
      if (stopped.has(pid) || 'TtZX'.includes(state)) continue
      signal(pid, 'SIGSTOP')
      stopped.add(pid)
      more = true
    }
  }
  await sleep(between(FREEZE_MS))
  for (const pid of stopped) signal(pid, 'SIGCONT')
}

async function runOnce(args, freezes) {
  const from = performance.now()
  const child = spawn(process.execPath, [join(ROOT, '.scripts/test.mjs'), ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const told = []
  createInterface({ input: child.stdout }).on('line', (line) => told.push(line))
  let isOver = false
  const code = new Promise((resolve) => child.once('close', resolve)).finally(() => {
    isOver = true
  })
  let count = 0
  while (freezes && !isOver) {
    await Promise.race([sleep(between(BETWEEN_MS)), code])
    if (isOver) break
    await freeze(child.pid)
    count++
  }
  await code
  return { seconds: (performance.now() - from) / 1_000, told, freezes: count }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    quick: { type: 'boolean', default: false },
    spin: { type: 'boolean', default: false },
    freeze: { type: 'boolean', default: false },
  },
})

const spinners = Array.from({ length: values.spin ? availableParallelism() : 0 }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
)
process.on('exit', () => {
  for (const spinner of spinners) spinner.kill('SIGKILL')
})
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => process.exit(1))

let failed = 0
for (let run = 1; run <= Number(values.runs); run++) {
  const { seconds, told, freezes } = await runOnce(
    [...(values.quick ? ['--quick'] : []), ...positionals],
    values.freeze,
  )
  const last = told.at(-1) ?? 'no output'
  console.log(`run ${run}: ${last} in ${seconds.toFixed(0)} s${values.freeze ? `, frozen ${freezes} times` : ''}`)
  if (/^\d+ passed, 0 failed$/.test(last)) continue
  failed++
  for (const line of told.filter((line) => /^(not ok|FAILED)| not ok/.test(line))) console.log(`  ${line}`)
  const results = join(ROOT, 'build/results.tap')
  if (existsSync(results)) copyFileSync(results, join(ROOT, `build/soak-${run}.tap`))
}
console.log(`${Number(values.runs) - failed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)
