// CPU of one server nobody asks for anything, in percent of a core: its process and the engine's, by thread, over a minute that begins
// when both have settled. `npm run bench -- idle [seconds] [settling seconds]`; goal 0.5 percent in all.

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleanUp, startServer } from '../test/helpers/server.ts'
import { childrenOf } from './measure.ts'

const [seconds = '60', settling = '30'] = process.argv.slice(3)
const THREADS_SHOWN = 8

interface Thread {
  readonly name: string
  readonly micros: number
  readonly wakes: number
}

/** CPU so far, to the nanosecond where the kernel keeps it, and how often each has gone to sleep. */
function threadsOf(pid: number): Map<string, Thread> {
  const threads = new Map<string, Thread>()
  for (const id of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string) => readFileSync(`/proc/${pid}/task/${id}/${file}`, 'utf8')
    const [nanos = '0'] = read('schedstat').split(' ')
    const [, wakes = '0'] = /^voluntary_ctxt_switches:\s+(\d+)/m.exec(read('status')) ?? []
    threads.set(id, { name: read('comm').trim(), micros: Number(nanos) / 1_000, wakes: Number(wakes) })
  }
  return threads
}

try {
  const { pid } = await startServer({ asShipped: true })
  const processes = [['server', pid], ...childrenOf(pid).map((child) => ['engine', child] as const)] as const
  await sleep(1_000 * Number(settling))
  const before = processes.map(([, id]) => threadsOf(id))
  const startedAt = performance.now()
  await sleep(1_000 * Number(seconds))
  const after = processes.map(([, id]) => threadsOf(id))
  const tookSeconds = (performance.now() - startedAt) / 1_000
  const percent = (micros: number) => (micros / tookSeconds / 10_000).toFixed(3)

  let sum = 0
  for (const [i, [name]] of processes.entries()) {
    const used = [...(after[i] ?? [])].map(([id, thread]) => {
      const earlier = before[i]?.get(id)
      return {
        name: thread.name,
        micros: thread.micros - (earlier?.micros ?? 0),
        wakes: (thread.wakes - (earlier?.wakes ?? 0)) / tookSeconds,
      }
    })
    const micros = used.reduce((total, one) => total + one.micros, 0)
    sum += micros
    process.stdout.write(`${name}: ${percent(micros)} % of a core\n`)
    for (const one of used.sort((a, b) => b.micros - a.micros).slice(0, THREADS_SHOWN)) {
      process.stdout.write(`  ${percent(one.micros)} % ${one.name}, ${one.wakes.toFixed(1)} wake-ups/s\n`)
    }
  }
  process.stdout.write(`both: ${percent(sum)} % of a core, of 0.5 allowed\n`)
} finally {
  await cleanUp()
}
