// How long a new user waits: a fresh clone of the checked-out commit, `npm ci`, `npm start`, until the first identification is
// answered. Prints each part in seconds; `npm run bench:start -- 3` does it three times.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const answerMsMax = 300_000
const stopMsMax = 30_000
const betweenMs = 50

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** Resolves with the answer to the identification that the welcome text suggests. */
async function firstAnswer(child, port) {
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  const until = performance.now() + answerMsMax
  for (; performance.now() < until; await new Promise((resolve) => setTimeout(resolve, betweenMs))) {
    if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}`)
    const [key] = /sk_test_\w+/.exec(said) ?? []
    if (key === undefined) continue
    const response = await fetch(`http://127.0.0.1:${port}/v1/identify`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/147.0.0.0', linkedId: 'user_42' }),
    })
    if (response.status !== 200) throw new Error(`identify was answered with ${response.status}`)
    return await response.json()
  }
  throw new Error('no answer came')
}

async function stop(child) {
  if (child.exitCode !== null) return
  process.kill(-child.pid, 'SIGTERM')
  const late = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), stopMsMax)
  await once(child, 'close')
  clearTimeout(late)
}

async function measure() {
  const dir = mkdtempSync(join(tmpdir(), 'fingerpost-start-'))
  const clone = join(dir, 'clone')
  const env = { ...process.env, FINGERPOST_LOG_LEVEL: 'warn' }
  try {
    execFileSync('git', ['clone', '-q', ROOT, clone])
    const from = performance.now()
    execFileSync('npm', ['ci'], { cwd: clone, stdio: ['ignore', 'ignore', 'inherit'], env })
    const installed = performance.now()
    const port = await freePort()
    const child = spawn('npm', ['start'], {
      cwd: clone,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...env, FINGERPOST_PORT: String(port) },
    })
    try {
      await firstAnswer(child, port)
      const answered = performance.now()
      return { 'npm ci': installed - from, 'npm start': answered - installed, together: answered - from }
    } finally {
      await stop(child)
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const runs = Number(process.argv[2] ?? 1)
if (!Number.isInteger(runs) || runs < 1) throw new Error('usage: measure-start.mjs [runs]')
for (let run = 0; run < runs; run++) {
  const parts = Object.entries(await measure()).map(([part, ms]) => `${part} ${(ms / 1_000).toFixed(1)} s`)
  console.log(parts.join(', '))
}
