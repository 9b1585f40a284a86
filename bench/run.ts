// `npm run bench -- <name> [options]`: runs one benchmark by name.

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
  'load-picture',
  'worker',
  'idle',
]
const name = process.argv[2] ?? 'ingest'
if (!NAMES.includes(name)) {
  process.stderr.write(`benchmarks: ${NAMES.join(', ')}\n`)
  process.exit(1)
}
await import(`./${name}.js`)
