// Draws what `bench load` measured of two builds: npm run bench -- load-picture before.json after.json > bench/load.svg

import { readFileSync } from 'node:fs'
import { type Chart, decades, drawCharts, type Line, upTo } from './chart.ts'
import type { Load } from './offer.ts'

const [before = '', after = ''] = process.argv.slice(process.argv.indexOf('load-picture') + 1)
const read = (file: string): Load[] => JSON.parse(readFileSync(file, 'utf8'))
const series = [
  { name: 'before', loads: read(before) },
  { name: 'after', loads: read(after) },
]
const rates = series.flatMap(({ loads }) => loads.map(({ offered }) => offered))
const offeredMax = Math.max(...rates)
const x = { from: 0, to: offeredMax, ticks: [...new Set(rates)].sort((a, b) => a - b) }
const linesOf = (figure: (load: Load) => number): Line[] =>
  series.map(({ name, loads }) => ({ name, points: loads.map((load) => [load.offered, figure(load)] as const) }))

const charts: readonly Chart[] = [
  { title: 'answers per second', lines: linesOf(({ answered }) => answered), x, y: upTo(offeredMax) },
  { title: 'p99, ms (logarithmic)', lines: linesOf(({ p99Ms }) => p99Ms), x, y: decades(1, 10_000) },
]
process.stdout.write(drawCharts(charts, 'identifications offered per second'))
