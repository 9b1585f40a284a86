// Runs test files side by side in a few processes: most files one after another in a process that lives on, so that modules are
// loaded and compiled once; files that need a process of their own in one of theirs.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openCounts, openSummary } from './test-report.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WORKER = fileURLToPath(new URL('./test-worker.mjs', import.meta.url))
const TAP_ENV = { TAP_FAIL_SKIP: '1', TAP_FAIL_TODO: '1', TAP_FAIL_ONLY: '1' }

/**
 * Starts a process for test files. It leads a group, so that what its tests have started ends with it.
 * `onLine` is told each line of its TAP.
 */
function openWorker({ node, env, nodeArgs, onLine }) {
  const child = fork(WORKER, {
    cwd: ROOT,
    execPath: node,
    detached: true,
    execArgv: nodeArgs,
    env: { ...process.env, ...TAP_ENV, ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  createInterface({ input: child.stdout }).on('line', (line) => onLine(line))
  let over = null
  const closed = once(child, 'close').then(([code, signal]) => {
    over = signal ?? code
    return over
  })
  closed.catch(() => {})
  // Others than the worker may send messages in its process, as tap does.
  const told = (what) =>
    new Promise((resolve) => {
      const look = (message) => {
        if (message?.[what] === undefined) return
        child.off('message', look)
        resolve(message[what])
      }
      child.on('message', look)
    })
  const ready = Promise.race([told('ready'), closed])
  return {
    isOver: () => over !== null,
    /** What the file has cost; null when the process ended before the file did, or was ended after `msMax`. */
    async run(file, msMax) {
      await ready
      if (over !== null) return null
      const answered = told('cost')
      const timer = setTimeout(() => this.kill(), msMax)
      child.send({ name: file, path: join(ROOT, file) }, () => {})
      const cost = await Promise.race([answered, closed.then(() => null)])
      clearTimeout(timer)
      return cost
    },
    async end() {
      if (over === null && child.connected) child.send('end', () => {})
      await closed
      this.kill()
    },
    kill() {
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    },
  }
}

/**
 * Runs every file and prints a line for each. `ownsProcess(file)` tells which ones get a process of their own; `results` is the
 * path of the whole TAP, `node` of the binary they run under. Resolves with the files, each with its counts and costs, and with sentences on what else went wrong.
 */
export async function runFiles({
  files,
  jobs,
  ownsProcess,
  node = process.execPath,
  env,
  nodeArgs,
  fileMsMax,
  results,
  print,
}) {
  const queue = [...files]
  const done = []
  const problems = []
  const workers = new Set()
  rmSync(results, { force: true })

  function open(slot) {
    const worker = openWorker({ node, env, nodeArgs, onLine: (line) => slot.onLine(line) })
    workers.add(worker)
    return worker
  }

  async function endWorker(worker) {
    await worker.end()
    workers.delete(worker)
  }

  async function runOne(slot, worker, file) {
    const lines = []
    const { counts, read } = openCounts()
    const summary = openSummary(print)
    let showing = false
    slot.onLine = (line) => {
      const isEdge = line.startsWith('    ') && line[4] !== ' ' && line.includes(file)
      if (isEdge && line.startsWith('    # Subtest: ')) showing = true
      if (!showing) return
      lines.push(line)
      read(line)
      summary.read(line)
      if (isEdge && /^ {4}(not )?ok /.test(line)) showing = false
    }
    const from = performance.now()
    const cost = await worker.run(file, fileMsMax)
    if (cost === null) await worker.end()
    // The last lines may come after the message.
    else await untilQuiet(() => !showing && lines.length > 0)
    slot.onLine = () => {}
    appendFileSync(results, `${lines.join('\n')}\n`)
    const wallMs = cost?.wallMs ?? Math.round(performance.now() - from)
    if (cost === null) {
      counts.failed++
      problems.push(`${file}: its process ended before the file did, or it took more than ${fileMsMax / 1_000} s`)
    }
    if (counts.passed + counts.failed === 0) problems.push(`${file} asserted nothing`)
    if (counts.undone > 0) problems.push(`${file} skips ${counts.undone} tests`)
    summary.end(file, counts, wallMs)
    done.push({ name: file, ...counts, wallMs, ownCpuMs: cost?.ownCpuMs ?? 0, childrenCpuMs: cost?.childrenCpuMs ?? 0 })
  }

  async function work() {
    const slot = { onLine: () => {} }
    let shared = null
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      if (ownsProcess(file)) {
        const worker = open(slot)
        await runOne(slot, worker, file)
        await endWorker(worker)
        continue
      }
      if (shared?.isOver()) workers.delete(shared)
      if (shared === null || shared.isOver()) shared = open(slot)
      await runOne(slot, shared, file)
    }
    if (shared !== null) await endWorker(shared)
  }

  const stop = (signal) => {
    for (const worker of workers) worker.kill()
    process.exit(signal === 'SIGINT' ? 130 : 143)
  }
  process.once('SIGINT', stop).once('SIGTERM', stop)
  await Promise.all(Array.from({ length: Math.min(jobs, files.length) }, work))
  process.off('SIGINT', stop).off('SIGTERM', stop)
  return { files: done, problems }
}

async function untilQuiet(holds) {
  for (const until = performance.now() + 5_000; !holds() && performance.now() < until; ) {
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
