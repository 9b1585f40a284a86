// Many seeds by hand: `npm run model -- --seeds 100000 [--from N] [--erasing] [--healing] [--lists] [--merging] [--splitting] [--moving] [--crashing] [--sharded] [--handing] [--spreading] [--portions] [--reading] [--loses-stream]`. Two processes share them; progress goes to stderr, failing
// seeds with their trace to stdout, and the exit code is 1 when there was one.

import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'

const PROCESSES = 2
const PROGRESS_MS = 5_000

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string', default: '1' },
    crashing: { type: 'boolean', default: false },
    erasing: { type: 'boolean', default: false },
    healing: { type: 'boolean', default: false },
    lists: { type: 'boolean', default: false },
    merging: { type: 'boolean', default: false },
    moving: { type: 'boolean', default: false },
    sharded: { type: 'boolean', default: false },
    handing: { type: 'boolean', default: false },
    portions: { type: 'boolean', default: false },
    reading: { type: 'boolean', default: false },
    spreading: { type: 'boolean', default: false },
    splitting: { type: 'boolean' },
    'loses-stream': { type: 'boolean', default: false },
  },
})
const seeds = Number(values.seeds)
const from = Number(values.from)
const options = JSON.stringify({
  crashing: values.crashing,
  erasing: values.erasing,
  healing: values.healing,
  losesStream: values['loses-stream'],
  lists: values.lists,
  merging: values.merging,
  moving: values.moving,
  sharded: values.sharded,
  handing: values.handing,
  portions: values.portions,
  reading: values.reading,
  spreading: values.spreading,
  splitting: values.splitting,
})
if (!Number.isSafeInteger(seeds) || seeds < 1 || !Number.isSafeInteger(from) || from < 0) {
  console.error(
    'usage: npm run model -- --seeds <count> [--from <first seed>] [--erasing] [--healing] [--lists] [--merging] [--splitting] [--moving] [--crashing] [--sharded] [--handing] [--spreading] [--portions] [--reading] [--loses-stream]',
  )
  process.exit(2)
}

const done = new Array<number>(PROCESSES).fill(0)
const startedAt = performance.now()
let failed = 0
const total = () => done.reduce((sum, count) => sum + count, 0)
const progress = () => {
  const seconds = (performance.now() - startedAt) / 1_000
  console.error(`${total()} of ${seeds} seeds, ${failed} failed, ${(total() / seconds).toFixed(1)} seeds/s`)
}

function runShare(index: number): Promise<boolean> {
  const count = Math.floor((seeds - index + PROCESSES - 1) / PROCESSES)
  if (count === 0) return Promise.resolve(true)
  const child = fork(new URL('./run.child.js', import.meta.url), [
    ...[from + index, count, PROCESSES].map(String),
    options,
  ])
  child.on('message', (message: { readonly done?: number; readonly failed?: string }) => {
    if (message.done !== undefined) done[index] = message.done
    if (message.failed === undefined) return
    failed++
    console.log(`${message.failed}\n`)
  })
  return new Promise((resolve) =>
    child.once('exit', (code, signal) => {
      if (done[index] !== count)
        console.log(`share ${index + 1} ended early, with ${done[index]} of ${count} seeds told: ${signal ?? code}\n`)
      resolve(code === 0)
    }),
  )
}

const timer = setInterval(progress, PROGRESS_MS)
const passed = await Promise.all(Array.from({ length: PROCESSES }, (_, index) => runShare(index)))
clearInterval(timer)
progress()
process.exitCode = passed.every(Boolean) ? 0 : 1
