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

/** What two builds said in one round of alternating runs. */
export interface RoundOfTwo {
  readonly before: readonly string[]
  readonly after: readonly string[]
}

/** A figure that both said in every round. */
export interface Compared {
  /** As the first run said it, and which of its figures this is. */
  readonly line: string
  readonly figure: number
  /** By round. */
  readonly before: readonly number[]
  readonly after: readonly number[]
  /** Of the same round, after to before; null where before is 0. */
  readonly ratios: readonly (number | null)[]
  readonly medianBefore: number
  readonly medianAfter: number
  /** Of the ratios. */
  readonly medianRatio: number | null
}

/** The middle one, or what lies between the middle two. */
function medianOf(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  return ((sorted[(sorted.length - 1) >> 1] ?? Number.NaN) + (sorted[sorted.length >> 1] ?? Number.NaN)) / 2
}

/** Figures of each line by its shape; the second line of a shape is another one than the first. */
function figuresByLine(lines: readonly string[]): Map<string, { readonly line: string; readonly figures: number[] }> {
  const found = new Map<string, { readonly line: string; readonly figures: number[] }>()
  for (const line of lines) {
    const shape = shapeOf(line)
    let nth = 0
    while (found.has(`${nth} ${shape}`)) nth++
    found.set(`${nth} ${shape}`, { line, figures: figuresOf(line) })
  }
  return found
}

/** Every figure of every line that both builds said in all rounds. */
export function compareRounds(rounds: readonly RoundOfTwo[]): Compared[] {
  const sides = rounds.map(({ before, after }) => ({ before: figuresByLine(before), after: figuresByLine(after) }))
  const compared: Compared[] = []
  for (const [key, { line, figures }] of sides[0]?.before ?? []) {
    if (!sides.every(({ before, after }) => before.has(key) && after.has(key))) continue
    for (let figure = 0; figure < figures.length; figure++) {
      const of = (side: 'before' | 'after') => sides.map((round) => round[side].get(key)?.figures[figure] ?? Number.NaN)
      const [before, after] = [of('before'), of('after')]
      const ratios = before.map((was, i) => (was === 0 ? null : (after[i] as number) / was))
      const known = ratios.filter((ratio) => ratio !== null)
      compared.push({
        line,
        figure,
        before,
        after,
        ratios,
        medianBefore: medianOf(before),
        medianAfter: medianOf(after),
        medianRatio: known.length === 0 ? null : medianOf(known),
      })
    }
  }
  return compared
}

const short = (figure: number): string => String(Number(figure.toPrecision(4)))

/** Each line once, with `median → median (ratio; ratio of each round)` for each figure that is not always the same. */
export function tellRounds(compared: readonly Compared[]): string[] {
  const lines = new Map<string, Compared[]>()
  for (const one of compared) lines.set(one.line, [...(lines.get(one.line) ?? []), one])
  return [...lines].map(([line, figures]) => {
    let at = 0
    return line.replace(NUMBER, (text) => {
      const one = figures[at++]
      if (one === undefined || [...one.before, ...one.after].every((figure) => figure === one.before[0])) return text
      const ratios = one.ratios.map((ratio) => ratio?.toFixed(2) ?? '–').join(' ')
      const median = one.medianRatio?.toFixed(2) ?? '–'
      return `${short(one.medianBefore)} → ${short(one.medianAfter)} (${median}; ${ratios})`
    })
  })
}
