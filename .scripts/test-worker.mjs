// Runs the test files that its parent names, one after another, each as a test below the root of this process. Its standard
// output is TAP; after each file it tells its parent what the file has cost.
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { cpuMs } from './test-report.mjs'
import { divide, roots } from './test-tap.mjs'

async function run(all, { name, path }) {
  const url = pathToFileURL(path).href
  const from = { at: performance.now(), ...cpuMs() }
  await all.test(name, async (root) => {
    roots.set(url, root)
    await import(url)
  })
  const to = { at: performance.now(), ...cpuMs() }
  const [wallMs, ownCpuMs, childrenCpuMs] = ['at', 'own', 'children'].map((what) => Math.round(to[what] - from[what]))
  process.send({ cost: { wallMs, ownCpuMs, childrenCpuMs } })
}

let isDone = false
divide()
t.setTimeout(0)
// Files are tests below this one, which ends when its parent says so: an idle root would end by itself between two files.
void t.test('files', { timeout: 0 }, (all) => {
  process.on('message', (message) => {
    if (message !== 'end') return void run(all, message)
    // What a file may have left open must not keep the run.
    isDone = true
    process.exit()
  })
})
// Whoever started this process and what it has started is gone: so is everybody of its group.
process.on('disconnect', () => isDone || process.kill(0, 'SIGKILL'))
// tap lets the process end while its parent is silent.
process.channel.ref()
process.send({ ready: true })
