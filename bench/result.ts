// What is kept of a run besides its figures: machine, versions, commit and arguments, as JSON; and two such results side by side.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'

export interface Facts {
  readonly cpu: string
  readonly threads: number
  readonly memoryBytes: number
  readonly system: string
  readonly node: string
  readonly v8: string
  readonly fingerpost: string
  /** With `+` behind it where the tree has changes; `unknown` outside of a repository. */
  readonly commit: string
  /** Of the last minute, when the run began: what else the machine did. */
  readonly load: number
}

export interface Result {
  readonly benchmark: string
  readonly arguments: readonly string[]
  readonly startedAt: string
  readonly seconds: number
  readonly facts: Facts
  /** Lines of stdout. */
  readonly output: readonly string[]
}

const ROOT = new URL('../..', import.meta.url).pathname

function commitOf(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim()
    return git('rev-parse', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+')
  } catch {
    return 'unknown'
  }
}

export function readFacts(): Facts {
  const { version } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as { version: string }
  const [first] = cpus()
  return {
    cpu: first?.model ?? 'unknown',
    threads: cpus().length,
    memoryBytes: totalmem(),
    system: `${process.platform} ${process.arch}`,
    node: process.version,
    v8: process.versions.v8,
    fingerpost: version,
    commit: commitOf(),
    load: loadavg()[0] ?? 0,
  }
}

const NUMBER = /(?<![\w.])\d[\d,]*(?:\.\d+)?/g
/** What a line says without its figures: by that the same line of another run is found. */
const shapeOf = (line: string): string => line.replace(NUMBER, '#').replace(/ {2,}/g, ' ').trim()
const figuresOf = (line: string): number[] => (line.match(NUMBER) ?? []).map((text) => Number(text.replaceAll(',', '')))

/** What differs on the machines, then each line that both have, with `before → after (ratio)` for each of its figures. */
export function compareResults(before: Result, after: Result): string[] {
  const said = [`${before.benchmark}: ${before.facts.commit.slice(0, 12)} → ${after.facts.commit.slice(0, 12)}`]
  if (before.benchmark !== after.benchmark) said.push(`different benchmarks: ${after.benchmark}`)
  if (before.arguments.join(' ') !== after.arguments.join(' ')) said.push('different arguments')
  for (const fact of ['cpu', 'threads', 'memoryBytes', 'system', 'node'] as const) {
    const [was, is] = [before.facts[fact], after.facts[fact]]
    if (was !== is) said.push(`not comparable, ${fact}: ${was} → ${is}`)
  }
  const left = new Map<string, string[]>()
  for (const line of before.output) left.set(shapeOf(line), [...(left.get(shapeOf(line)) ?? []), line])
  for (const line of after.output) {
    const was = left.get(shapeOf(line))?.shift()
    if (was === undefined || figuresOf(line).length === 0) continue
    const old = figuresOf(was)
    let at = 0
    said.push(
      line.replace(NUMBER, (text) => {
        const from = old[at++] ?? 0
        const to = Number(text.replaceAll(',', ''))
        return from === to ? text : `${from} → ${to}${from === 0 ? '' : ` (${(to / from).toFixed(2)})`}`
      }),
    )
  }
  return said
}
