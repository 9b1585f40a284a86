// Reads the TAP of a process that runs test files, makes a log of it that people read, and keeps what files have cost.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** Runs whose totals are kept. */
const RUNS_MAX = 50
const SLOWEST_SHOWN = 10

/** A hundredth of a second, as Linux counts the time of processes. */
const TICK_MS = 10

/** CPU of this process, and of its children that have ended and theirs, in milliseconds; of children only on Linux. */
export function cpuMs() {
  const { user, system } = process.cpuUsage()
  let children = 0
  try {
    const fields = readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ')
    children = (Number(fields[13]) + Number(fields[14])) * TICK_MS
  } catch {
    // Known on Linux alone.
  }
  return { own: (user + system) / 1_000, children }
}

/** Counts the assertions of one file, line by line; a test with assertions of its own below it is none itself. */
export function openCounts() {
  const counts = { passed: 0, failed: 0, undone: 0 }
  const open = []
  return {
    counts,
    read(line) {
      const subtest = /^( *)# Subtest: /.exec(line)
      if (subtest) return void open.push({ depth: subtest[1].length, failed: false })
      const result = /^( *)(not )?ok\b/.exec(line)
      if (!result) return
      const depth = result[1].length
      while (open.length > 0 && open.at(-1).depth > depth) open.pop()
      const closes = open.at(-1)?.depth === depth ? open.pop() : null
      if (/ # (SKIP|TODO)\b/i.test(line)) counts.undone++
      // What failed outside of its assertions, as by a time-out, shows in the line that closes it.
      else if (closes !== null) {
        if (result[2] !== undefined && !closes.failed) counts.failed++
      } else if (result[2] === undefined) counts.passed++
      else counts.failed++
      if (result[2] !== undefined) for (const one of open) one.failed = true
    },
  }
}

/** Prints one line for a file that passed, and all but its passed assertions for one that failed. */
export function openSummary(print) {
  let held = []
  return {
    read(line) {
      if (/^ +(ok \d+|1\.\.\d+)/.test(line) || line.trim() === '') return
      held.push(line)
    },
    end(name, { passed, failed }, wallMs) {
      // What this machine lacks for a test is told whether the others passed or not.
      for (const each of held) if (failed > 0 || each.includes('NOT RUN: ')) print(each)
      print(
        `${failed > 0 ? 'not ok' : 'ok'} - ${name} # ${passed} passed, ${failed} failed, ${(wallMs / 1_000).toFixed(1)} s`,
      )
      held = []
    },
  }
}

const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`

/** What files cost last time, and what runs took: build/test-times.json. */
export function openTimes(path) {
  const empty = { runs: [], files: {} }
  let kept = empty
  try {
    if (existsSync(path)) kept = { ...empty, ...JSON.parse(readFileSync(path, 'utf8')) }
  } catch {
    // Half a file is no history.
  }
  return {
    /** Of the file in a run of any size; null when it was never run here. */
    wallMs: (name) => kept.files[name]?.wallMs ?? null,
    /** `files` has name, wallMs, ownCpuMs and childrenCpuMs of each. Tells the slowest, and how the run compares to the last like it. */
    keep({ size, startedAt, wallMs, files, isWhole }, print) {
      const cpuMs = files.reduce((sum, { ownCpuMs, childrenCpuMs }) => sum + ownCpuMs + childrenCpuMs, 0)
      const slowest = files.toSorted((a, b) => b.wallMs - a.wallMs).slice(0, SLOWEST_SHOWN)
      const width = Math.max(...slowest.map(({ name }) => name.length))
      print(`# the slowest of ${files.length} files:`)
      for (const { name, ...of } of slowest) {
        print(
          `#   ${name.padEnd(width)}  ${seconds(of.wallMs)}, CPU ${seconds(of.ownCpuMs)} and ${seconds(of.childrenCpuMs)} in children`,
        )
      }
      const last = kept.runs.findLast((run) => run.size === size)
      const before = isWhole && last ? ` (${seconds(last.wallMs)} and ${seconds(last.cpuMs)} last time)` : ''
      print(`# ${size}: ${seconds(wallMs)}, CPU of files ${seconds(cpuMs)}${before}`)
      for (const { name, ...of } of files) kept.files[name] = { size, ...of }
      if (isWhole) kept.runs = [...kept.runs, { size, startedAt, wallMs, cpuMs, files: files.length }].slice(-RUNS_MAX)
      writeFileSync(path, `${JSON.stringify(kept, null, 1)}\n`)
    },
  }
}
