// Whether visits are answered as before, to the byte: npm run bench -- answers [--visits 20000] [--seed 1] with --record FILE, to keep
// what this build answers; --against FILE, to compare it with what was kept; or --main DIR, to compare it with the build in the folder
// of another checkout. A seeded corpus goes through the decider itself, with seeded clock, ids and tokens.

import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createGunzip, createGzip } from 'node:zlib'
import { answersOf, openAnswersBuild } from './answers/build.ts'
import { corpusVisits } from './answers/corpus.ts'
import { createDifferences, differencesText } from './answers/differences.ts'

const USAGE = `bench answers [options]
  --visits 20000   visits of the corpus
  --seed 1         another seed is another corpus
  --record FILE    keeps the answers, compressed, one a line; with --main those of the other build
  --against FILE   compares with answers that were kept; ends with 1 when any differ
  --main DIR       a checkout that is built; alone, its answers are compared with those of this build
  --partitions 4   partitions of the deciders
  --shards 1       shards that they are spread over
  --batch 1        visits that a partition decides at once, at most
  --json           the differences as JSON
`

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    visits: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    record: { type: 'string' },
    against: { type: 'string' },
    main: { type: 'string' },
    partitions: { type: 'string', default: '4' },
    shards: { type: 'string', default: '1' },
    batch: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

function whole(name: 'visits' | 'seed' | 'partitions' | 'shards' | 'batch'): number {
  const value = Number(options[name])
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} takes a whole number from 1 on`)
  return value
}

const OWN = fileURLToPath(new URL('../..', import.meta.url))

async function main(): Promise<void> {
  const [visits, seed] = [whole('visits'), whole('seed')]
  const wanted = { seed, partitions: whole('partitions'), shards: whole('shards'), batch: whole('batch') }
  const { record, against } = options
  const answers = async (dir: string) => answersOf(await openAnswersBuild(dir), wanted, corpusVisits({ visits, seed }))
  if (record !== undefined) {
    await keep(record, await answers(options.main ?? OWN))
    return
  }
  if (against === undefined && options.main === undefined) throw new Error('--record, --against or --main')
  const now = await answers(against === undefined ? OWN : (options.main ?? OWN))
  const before = against === undefined ? await answers(options.main as string) : kept(against)
  const differences = createDifferences()
  for await (const text of before) {
    const own = now.next()
    if (own.done === true) throw new Error('there are fewer answers than before')
    differences.add(text, own.value)
  }
  if (now.next().done !== true) throw new Error('there are more answers than before')
  const result = differences.result()
  console.log(options.json ? JSON.stringify({ ...wanted, ...result }, null, 2) : differencesText(result))
  if (result.differing + result.renamed > 0) process.exitCode = 1
}

async function keep(file: string, answers: Iterable<string>): Promise<void> {
  const packed = createGzip({ level: 1 })
  const written = packed.pipe(createWriteStream(file))
  let count = 0
  for (const text of answers) {
    count++
    if (!packed.write(`${text}\n`)) await once(packed, 'drain')
  }
  packed.end()
  await once(written, 'close')
  console.log(`${count} answers in ${file}`)
}

const kept = (file: string): AsyncIterable<string> =>
  createInterface({ input: createReadStream(file).pipe(createGunzip()), crlfDelay: Number.POSITIVE_INFINITY })

if (options.help) process.stdout.write(USAGE)
else await main()
