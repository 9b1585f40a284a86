// Development: the compiler watches, the server restarts on its output, the browser SDK, the guides and the console are rebuilt when their sources
// change.
// Expects a finished build, as `npm run dev` makes one first. Ctrl-C stops all of it.
import { spawn } from 'node:child_process'
import { watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const exitMsMax = 15_000
const settleMs = 200

const children = new Map()
let stopping = false

/** Starts a child in a process group of its own, so that Ctrl-C reaches it once, through us, and its own children with it. */
function start(name, args) {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], detached: true })
  children.set(name, child)
  child.once('exit', (code, signal) => {
    children.delete(name)
    if (!stopping) {
      console.error(`${name} ended with ${signal ?? code}`)
      stop('SIGTERM', 1)
    } else if (children.size === 0) process.exit()
  })
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

function stop(signal, exitCode) {
  if (stopping) return
  stopping = true
  process.exitCode = exitCode
  if (children.size === 0) process.exit()
  for (const child of children.values()) signalGroup(child, signal)
  setTimeout(() => {
    for (const child of children.values()) signalGroup(child, 'SIGKILL')
  }, exitMsMax).unref()
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop('SIGTERM', 0))

start('tsc', [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.', '--watch', '--preserveWatchOutput'])
start('server', ['--watch', '--watch-preserve-output', join(ROOT, 'build/src/main.js'), 'start'])

// A process per build: the bundler keeps its caches and workers for as long as the process lives.
function rebuildOn(name, script, folders) {
  let pending = null
  let again = false
  function rebuild() {
    if (stopping) return
    again = children.has(name)
    if (again) return
    const child = spawn(process.execPath, [join(ROOT, script)], { stdio: 'inherit', detached: true })
    children.set(name, child)
    child.once('exit', (code) => {
      children.delete(name)
      console.log(code === 0 ? `${name} rebuilt` : `${name}: build failed`)
      if (stopping && children.size === 0) process.exit()
      if (again) rebuild()
    })
  }
  for (const folder of folders) {
    watch(join(ROOT, folder), { recursive: true }, () => {
      clearTimeout(pending)
      pending = setTimeout(rebuild, settleMs)
    })
  }
}

rebuildOn('sdk', '.scripts/build-sdk.mjs', ['src/sdk'])
// The server reads them when a page is first asked for.
rebuildOn('docs', '.scripts/build-docs.mjs', ['src/docs/guides', 'src/sdk/docs'])
rebuildOn('console', '.scripts/build-console.mjs', ['src/console'])
