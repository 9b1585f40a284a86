// `npm run bench -- NAME [options]` runs one benchmark, with `--result FILE` what it says is kept there as JSON, with machine, versions and
// commit. `NAME --help` tells what it measures; `compare A.json B.json` puts two results side by side, and `compare COMMIT COMMIT NAME` runs
// a benchmark of two commits in turns.

import { readFileSync, writeFileSync } from 'node:fs'
import { compareCommits } from './commits.ts'
import { compareResults, type Result, readFacts } from './result.ts'

const NAMES = [
  'answers',
  'budget',
  'ingest',
  'decide',
  'propagation',
  'lists',
  'backtest',
  'identity',
  'match',
  'ip',
  'deliver',
  'read',
  'start',
  'hot',
  'load',
  'peers',
  'load-picture',
  'soak',
  'stored',
  'mixed',
  'rule-change',
  'disk',
  'worker',
  'idle',
  'console',
  'dashboards',
]

/** What stands above the code of a benchmark. */
function aboutOf(name: string): string {
  const lines = readFileSync(new URL(`../../bench/${name}.ts`, import.meta.url), 'utf8').split('\n')
  const end = lines.findIndex((line) => !line.startsWith('//'))
  return lines
    .slice(0, end)
    .map((line) => line.slice(3))
    .join('\n')
}

const overview = (): string =>
  [
    'usage: npm run bench -- NAME [options] [--result FILE]',
    '       npm run bench -- NAME --help',
    '       npm run bench -- compare A.json B.json',
    '       npm run bench -- compare COMMIT COMMIT [--turns 3] NAME [options] [--result FILE]',
    '',
    ...NAMES.map(
      (name) =>
        `  ${name.padEnd(14)}${aboutOf(name)
          .split(/[.:;](?:\s|$)/, 1)[0]
          ?.replaceAll('\n', ' ')}`,
    ),
  ].join('\n')

function fail(problem: string): never {
  process.stderr.write(`${problem}\n`)
  process.exit(2)
}

/** Takes an option with its value out of the arguments, of which the others are the benchmark's. */
function takeOption(args: string[], option: string): string | null {
  const at = args.indexOf(option)
  if (at < 0) return null
  const [, value] = args.splice(at, 2)
  return value ?? fail(`${option} takes a value`)
}

/** Writes what goes to stdout into `file` as well, when the process ends well. */
function keepResult(name: string, file: string): void {
  const startedAt = new Date()
  const facts = readFacts()
  const args = process.argv.slice(3)
  let said = ''
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = ((chunk: string | Uint8Array, ...rest: []) => {
    said += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    return write(chunk, ...rest)
  }) as typeof process.stdout.write
  process.on('exit', (code) => {
    if (code !== 0) return
    const seconds = (Date.now() - startedAt.getTime()) / 1_000
    const output = said.split('\n').filter((line) => line !== '')
    const result: Result = {
      benchmark: name,
      arguments: args,
      startedAt: startedAt.toISOString(),
      seconds,
      facts,
      output,
    }
    writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`)
  })
}

const file = takeOption(process.argv, '--result')
const [name = 'ingest', ...others] = process.argv.slice(2)
if (name === '--help') process.stdout.write(`${overview()}\n`)
else if (name === 'compare') {
  const turns = takeOption(others, '--turns') ?? '3'
  const [before, after, ...args] = others
  if (before === undefined || after === undefined)
    fail('compare takes two files of --result, or two commits and a name')
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Result
  if (args.length === 0) process.stdout.write(`${compareResults(read(before), read(after)).join('\n')}\n`)
  else if (!NAMES.includes(args[0] as string)) fail(`no benchmark ${args[0]}\n${overview()}`)
  else if (!(Number(turns) >= 1)) fail('--turns takes how often each of them runs')
  else await compareCommits({ before, after, args, rounds: Number(turns), file })
} else if (!NAMES.includes(name)) fail(`no benchmark ${name}\n${overview()}`)
else if (others.includes('--help')) process.stdout.write(`${aboutOf(name)}\n`)
else {
  if (file !== null) keepResult(name, file)
  await import(`./${name}.js`)
}
