// Asks the registry for known vulnerabilities of what the lockfile names and whether its signatures are right. Ends with 1 when it
// knows of something; a registry that cannot be asked is named and fails nothing: `npm run audit`.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const answerMsMax = 120_000
const outputBytesMax = 64 * 1_048_576
/** Of less grave ones the run tells, without failing. */
const FAILING = ['high', 'critical']

/** What `npm audit --json` said: the lines to print, and whether that is a failure. */
export function readVulnerabilities(stdout) {
  const said = parsed(stdout)
  const counts = said?.metadata?.vulnerabilities
  if (counts === undefined) return unreached('vulnerabilities', said)
  const lines = Object.values(said.vulnerabilities ?? {}).map(
    ({ name, severity, range }) => `${severity}: ${name} ${range}`,
  )
  return {
    lines: [...lines, `vulnerabilities: ${counts.total} known, ${counts.high + counts.critical} of them grave`],
    failed: FAILING.some((severity) => counts[severity] > 0),
  }
}

/** What `npm audit signatures --json` said. */
export function readSignatures(stdout) {
  const said = parsed(stdout)
  if (!Array.isArray(said?.invalid) || !Array.isArray(said?.missing)) return unreached('signatures', said)
  const lines = said.invalid.map(({ name, version }) => `the signature of ${name}@${version} is wrong`)
  return {
    lines: [...lines, `signatures: ${said.invalid.length} wrong, ${said.missing.length} missing`],
    failed: lines.length > 0,
  }
}

function unreached(what, said) {
  const why = [said?.error?.summary, said?.message, 'no answer'].find((text) => text)
  return {
    lines: [`${what}: NOT CHECKED, the registry could not be asked (${String(why).split('\n')[0]})`],
    failed: false,
  }
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function npm(...args) {
  const options = { cwd: ROOT, timeout: answerMsMax, maxBuffer: outputBytesMax }
  const patience = ['--fetch-retries=0', '--fetch-timeout=30000']
  return new Promise((resolve) => {
    execFile('npm', [...args, '--json', ...patience], options, (_, stdout) => resolve(stdout))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = [readVulnerabilities(await npm('audit')), readSignatures(await npm('audit', 'signatures'))]
  for (const line of found.flatMap(({ lines }) => lines)) console.log(line)
  process.exitCode = found.some(({ failed }) => failed) ? 1 : 0
}
