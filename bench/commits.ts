// `bench compare COMMIT COMMIT NAME [options]`: a benchmark of two builds of this program in alternating runs. A commit is checked out
// into a temporary folder and built there; a folder that is built already is taken as it is. Each runs its own benchmark of that name.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Compared, compareRounds, type Facts, type RoundOfTwo, readFacts, tellRounds } from './result.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const RUN = join('build', 'bench', 'run.js')
const NODE_ARGS = ['--min-semi-space-size=8', '--max-semi-space-size=32']

interface Side {
  readonly name: string
  readonly folder: string
}

/** What `--result` keeps of a comparison. */
export interface Comparison {
  readonly benchmark: string
  readonly arguments: readonly string[]
  readonly startedAt: string
  readonly seconds: number
  readonly facts: Facts
  /** Commits, or folders that were built already. */
  readonly before: string
  readonly after: string
  readonly rounds: readonly RoundOfTwo[]
  readonly figures: readonly Compared[]
}

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim()

function checkOut(commit: string, made: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'fingerpost-bench-'))
  made.push(folder)
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 2 ** 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  const lockOf = (root: string) => readFileSync(join(root, 'package-lock.json'), 'utf8')
  if (lockOf(folder) === lockOf(ROOT)) symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  else execFileSync('npm', ['ci'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  execFileSync(process.execPath, ['.scripts/build.mjs'], { cwd: folder, stdio: 'pipe' })
  return folder
}

function sideOf(named: string, made: string[]): Side {
  if (existsSync(join(named, RUN))) return { name: named, folder: resolve(named) }
  const commit = git('rev-parse', '--verify', `${named}^{commit}`)
  process.stderr.write(`building ${commit.slice(0, 12)}\n`)
  return { name: commit, folder: checkOut(commit, made) }
}

/** The lines it says. */
async function run({ name, folder }: Side, args: readonly string[]): Promise<readonly string[]> {
  const child = spawn(process.execPath, [...NODE_ARGS, RUN, ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.on('data', (chunk) => (said += chunk))
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${args[0]} of ${name} ended with ${code}`)
  return said.split('\n').filter((line) => line !== '')
}

export interface CompareOptions {
  readonly before: string
  readonly after: string
  /** The name of the benchmark, then its options. */
  readonly args: readonly string[]
  readonly rounds: number
  /** Where the comparison is kept as JSON. */
  readonly file: string | null
}

export async function compareCommits({ before, after, args, rounds, file }: CompareOptions): Promise<void> {
  const startedAt = new Date()
  const facts = readFacts()
  const made: string[] = []
  try {
    const sides = [sideOf(before, made), sideOf(after, made)] as const
    const ran: RoundOfTwo[] = []
    for (let n = 0; n < rounds; n++) {
      const output: [readonly string[], readonly string[]] = [[], []]
      // Each is the first as often as the other.
      for (const at of n % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) output[at] = await run(sides[at], args)
      ran.push({ before: output[0], after: output[1] })
      process.stderr.write(`round ${n + 1} of ${rounds}\n`)
    }
    const figures = compareRounds(ran)
    console.log(
      `${args.join(' ')}: ${sides[0].name.slice(0, 12)} → ${sides[1].name.slice(0, 12)}, ${rounds} rounds in turns`,
    )
    console.log(
      `${facts.cpu}, ${facts.threads} threads, Node ${facts.node}, load ${facts.load.toFixed(1)} at the start`,
    )
    for (const line of tellRounds(figures)) console.log(line)
    if (file === null) return
    const comparison: Comparison = {
      benchmark: args[0] ?? '',
      arguments: args.slice(1),
      startedAt: startedAt.toISOString(),
      seconds: (Date.now() - startedAt.getTime()) / 1_000,
      facts,
      before: sides[0].name,
      after: sides[1].name,
      rounds: ran,
      figures,
    }
    writeFileSync(file, `${JSON.stringify(comparison, null, 2)}\n`)
  } finally {
    for (const folder of made) rmSync(folder, { recursive: true, force: true })
  }
}
