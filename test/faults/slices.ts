// Campaigns are run in slices, on many days and commits: one line of JSON for each in `slices.jsonl`, and what they add up to.

import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Summary } from './series.ts'

export type Mode = 'embedded' | 'cluster' | 'failover' | 'power cut'

export interface Slice {
  /** A day, ISO 8601. */
  readonly at: string
  readonly commit: string
  readonly mode: Mode
  /** The arguments of `npm run faults --`; with the seed they make the same slice again. */
  readonly command: string
  readonly seeds: readonly number[]
  readonly injuries: number
  readonly acknowledged: number
  readonly lost: number
  readonly doubled: number
  /** What the first broken promise was; null when all were kept. */
  readonly violation: string | null
}

type Figures = Pick<Slice, 'injuries' | 'acknowledged' | 'lost' | 'doubled'> & { readonly slices: number }

const ROOT = new URL('../../../', import.meta.url)
/** Committed with the tests, so that figures and their seeds outlive the machine. */
export const SLICES_FILE = fileURLToPath(new URL('test/faults/slices.jsonl', ROOT))
/** How the checker names what stands somewhere more often than once. */
const DOUBLED = /twice|as a first|to .+ and to /

export function sliceOf(mode: Mode, command: string, done: readonly Summary[], now: Date): Slice {
  const sum = (of: (summary: Summary) => number) => done.reduce((total, summary) => total + of(summary), 0)
  const broken = done.find(({ violation }) => violation !== null)?.violation ?? null
  const isDoubled = broken !== null && DOUBLED.test(broken.what)
  return {
    at: now.toISOString().slice(0, 10),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: fileURLToPath(ROOT),
      encoding: 'utf8',
    }).trim(),
    mode,
    command,
    seeds: done.map(({ seed }) => seed),
    injuries: sum(({ cycles }) => cycles),
    acknowledged: sum(({ acked }) => acked),
    // A slice ends with the first broken promise.
    lost: broken !== null && !isDoubled ? 1 : 0,
    doubled: isDoubled ? 1 : 0,
    violation: broken === null ? null : `${broken.id} ${broken.what}`,
  }
}

export const appendSlice = (slice: Slice): void => appendFileSync(SLICES_FILE, `${JSON.stringify(slice)}\n`)

export const readSlices = (text: string): Slice[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Slice)

/** Sums by mode, and of all under `all`. */
export function sumSlices(slices: readonly Slice[]): ReadonlyMap<Mode | 'all', Figures> {
  const sums = new Map<Mode | 'all', Figures>()
  for (const slice of slices) {
    for (const name of [slice.mode, 'all'] as const) {
      const { injuries, acknowledged, lost, doubled, slices } = sums.get(name) ?? NONE
      sums.set(name, {
        slices: slices + 1,
        injuries: injuries + slice.injuries,
        acknowledged: acknowledged + slice.acknowledged,
        lost: lost + slice.lost,
        doubled: doubled + slice.doubled,
      })
    }
  }
  return sums
}

const NONE: Figures = { slices: 0, injuries: 0, acknowledged: 0, lost: 0, doubled: 0 }

/** The table of `npm run faults -- --sum`, as it stands in RESULTS.md. */
export function sumTable(): string {
  const sums = sumSlices(readSlices(readFileSync(SLICES_FILE, 'utf8')))
  const count = (n: number) => n.toLocaleString('en')
  const rows = [...sums]
    .sort(([a], [b]) => Number(a === 'all') - Number(b === 'all'))
    .map(([name, sum]) => {
      const { slices, injuries, acknowledged, lost, doubled } = sum
      return `| ${name} | ${[slices, injuries, acknowledged, lost, doubled].map(count).join(' | ')} |`
    })
  return ['| Mode | Slices | Injuries | Acknowledged | Lost | Doubled |', '|---|---|---|---|---|---|', ...rows].join(
    '\n',
  )
}
