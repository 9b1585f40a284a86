// Prints results as Markdown tables.

import type { Description } from './describe.ts'
import type { FrontierPoint, Precision, Result, Split } from './tally.ts'

const percent = (share: number, digits = 1): string =>
  Number.isNaN(share) ? '–' : `${(share * 100).toFixed(digits)} %`
const parts = ({ n, correct, wrong, split }: Split): string =>
  n === 0 ? '–' : [correct, wrong, split].map((count) => ((count / n) * 100).toFixed(1)).join(' / ')
const precision = ({ n, share, lower }: Precision): string =>
  n === 0 ? '–' : `${percent(share, 2)} (≥ ${percent(lower, 2)}, n ${n})`

function table(rows: readonly (readonly string[])[]): string {
  const [head, ...rest] = rows
  if (head === undefined) return ''
  return [head, head.map(() => '---'), ...rest].map((row) => `| ${row.join(' | ')} |`).join('\n')
}

export type Named = readonly (readonly [name: string, result: Result])[]

/** All methods side by side. `hard`: returning visits without a usable token. */
export function mainTable(results: Named): string {
  const head = [
    'method',
    'false merges, all visits',
    'hard: correct / wrong / split',
    'new filed under existing',
    'link precision',
    'private linked',
    'stable first id',
    'pairwise P / R',
  ]
  const rows = results.map(([name, r]) => [
    name,
    percent(r.falseMerges, 2),
    parts(r.hard),
    percent(r.newMerged, 2),
    percent(r.linkPrecision.share),
    percent(r.privateLinked),
    percent(r.stable),
    `${(r.pairPrecision * 100).toFixed(1)} / ${(r.pairRecall * 100).toFixed(1)}`,
  ])
  return table([head, ...rows])
}

export function segmentTable(results: Named): string {
  const names = Object.keys(results[0]?.[1].segments ?? {})
  const rows = results.map(([name, r]) => [name, ...names.map((segment) => parts(r.segments[segment] as Split))])
  return table([['hard: correct / wrong / split', ...names], ...rows])
}

/** By family of browser, the most frequent first. */
export function hardTable(results: Named): string {
  const families = Object.entries(results[0]?.[1].families ?? {})
  const head = ['hard: correct / wrong / split', 'n', ...results.map(([name]) => name)]
  const rows = families.map(([family, { n }]) => [
    family,
    String(n),
    ...results.map(([, result]) => parts(result.families[family] as Split)),
  ])
  return table([head, ...rows])
}

export function familyTable({ sureLinks, sureFound }: Result): string {
  const rows = Object.keys(sureFound).map((family) => [
    family,
    precision(sureLinks[family] ?? { n: 0, right: 0, share: 0, lower: 0 }),
    precision(sureFound[family] as Precision),
  ])
  return table([['confidence > 0.9', 'links without token', 'all that found somebody'], ...rows])
}

export function calibrationTable({ calibration }: Result): string {
  const rows = calibration.all.bins.map(({ n, said, right }, i) => [
    `${i / 10}–${(i + 1) / 10}`,
    String(n),
    percent(said),
    percent(right),
  ])
  const error = (name: keyof typeof calibration) => calibration[name].error.toFixed(4)
  return [
    `Calibration error of answers without token: ${error('all')}; of links ${error('links')}, of "new" ${error('new')}.`,
    '',
    table([['confidence', 'n', 'said', 'right'], ...rows]),
  ].join('\n')
}

/**
 * What would remain of the links without token if only those at least this sure were taken; the other methods, which have
 * no confidence, are points beside it.
 */
export function frontierTable(own: Result, others: Named): string {
  const row = (name: string, point: FrontierPoint) => [
    name,
    percent(point.linked),
    percent(point.wrong, 2),
    percent(point.newMerged, 2),
    percent(point.precision, 2),
  ]
  const rows = own.frontier.map((point) => row(point.confidenceMin.toFixed(2), point))
  const points = others.flatMap(([name, { frontier }]) => (frontier[0] === undefined ? [] : [row(name, frontier[0])]))
  return table([
    ['confidence ≥', 'hard linked', 'hard wrong', 'new filed under existing', 'link precision'],
    ...rows,
    ...points,
  ])
}

export function describeText(d: Description): string {
  const unicity = Object.entries(d.unicity).map(([name, { n, share }]) => `${name} ${percent(share)} of ${n}`)
  const agreement = Object.entries(d.agreement).map(([name, share]) => `${name} ${share.toFixed(3)}`)
  return [
    `${d.devices} devices, ${d.visits} visits, ${percent(d.tokenlessShare)} of the returning ones without a token, ${percent(d.privateShare)} private.`,
    `Unique at first sight: ${unicity.join(', ')}.`,
    `Equal from visit to visit: ${agreement.join(', ')}.`,
  ].join('\n')
}
