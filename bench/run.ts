// `npm run bench -- NAME [options]` runs one benchmark, with `--result FILE` what it says is kept there as JSON, with machine, versions and
// commit. `NAME --help` tells what it measures; `compare A.json B.json` puts two results side by side.

import { readFileSync, writeFileSync } from 'node:fs'
import { compareResults, type Result, readFacts } from './result.ts'

const NAMES = [
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
  'worker',
  'idle',
  'console',
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

/** Takes `--result FILE` out of the arguments, which are the benchmark's. */
function resultFile(): string | null {
  const at = process.argv.indexOf('--result')
  if (at < 0) return null
  const [, file] = process.argv.splice(at, 2)
  return file ?? fail('--result takes a file')
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

const file = resultFile()
const [name = 'ingest', ...others] = process.argv.slice(2)
if (name === '--help') process.stdout.write(`${overview()}\n`)
else if (name === 'compare') {
  const [before, after] = others
  if (before === undefined || after === undefined) fail('compare takes two files of --result')
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Result
  process.stdout.write(`${compareResults(read(before), read(after)).join('\n')}\n`)
} else if (!NAMES.includes(name)) fail(`no benchmark ${name}\n${overview()}`)
else if (others.includes('--help')) process.stdout.write(`${aboutOf(name)}\n`)
else {
  if (file !== null) keepResult(name, file)
  await import(`./${name}.js`)
}
