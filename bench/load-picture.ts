// Draws what `bench load` measured of two builds: npm run bench -- load-picture before.json after.json > bench/load.svg

import { readFileSync } from 'node:fs'
import type { Load } from './load.ts'

const [before = '', after = ''] = process.argv.slice(process.argv.indexOf('load-picture') + 1)
const read = (file: string): Load[] => JSON.parse(readFileSync(file, 'utf8'))
const series = [
  { name: 'before', colour: '#9a6700', loads: read(before) },
  { name: 'after', colour: '#0a7d5a', loads: read(after) },
]
const WIDTH = 720
const HEIGHT = 300
const LEFT = 64
const TOP = 40
const GAP = 70
const offeredMax = Math.max(...series.flatMap(({ loads }) => loads.map(({ offered }) => offered)))

interface Chart {
  readonly title: string
  readonly of: (load: Load) => number
  readonly max: number
  /** Where a value stands between bottom (0) and top (1). */
  readonly scale: (value: number) => number
  readonly ticks: readonly number[]
}

const P99_MS = [1, 10, 100, 1_000, 10_000]
const charts: readonly Chart[] = [
  {
    title: 'answers per second',
    of: ({ answered }) => answered,
    max: offeredMax,
    scale: (value) => value / offeredMax,
    ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(offeredMax * share)),
  },
  {
    title: 'p99, ms (logarithmic)',
    of: ({ p99Ms }) => Math.max(1, p99Ms),
    max: 10_000,
    scale: (value) => Math.log10(Math.max(1, value)) / 4,
    ticks: P99_MS,
  },
]

function draw({ title, of, scale, ticks }: Chart, top: number): string {
  const x = (offered: number) => LEFT + (offered / offeredMax) * (WIDTH - LEFT - 20)
  const y = (value: number) => top + HEIGHT - scale(value) * HEIGHT
  const grid = ticks.map(
    (tick) =>
      `<line x1="${LEFT}" x2="${WIDTH - 20}" y1="${y(tick)}" y2="${y(tick)}" class="grid"/><text x="${LEFT - 8}" y="${y(tick) + 4}" class="end">${tick}</text>`,
  )
  const marks = (series[1]?.loads ?? []).map(
    ({ offered }) => `<text x="${x(offered)}" y="${top + HEIGHT + 18}" class="middle">${offered}</text>`,
  )
  const lines = series.map(({ colour, loads }) => {
    const points = loads.map((load) => `${x(load.offered).toFixed(1)},${y(of(load)).toFixed(1)}`)
    const dots = points.map((point) => {
      const [cx, cy] = point.split(',')
      return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`
    })
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}`
  })
  return `<text x="${LEFT}" y="${top - 12}" class="title">${title}</text>${grid.join('')}${marks.join('')}${lines.join('')}`
}

const height = TOP + charts.length * (HEIGHT + GAP) + 10
const legend = series.map(
  ({ name, colour }, i) =>
    `<text x="${WIDTH - 20}" y="${TOP - 12 + i * 18}" class="end" fill="${colour}">${name}</text>`,
)
console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">
<style>.grid{stroke:#d0d7de}.end{text-anchor:end}.middle{text-anchor:middle}.title{font-weight:600}</style>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
${charts.map((chart, i) => draw(chart, TOP + i * (HEIGHT + GAP))).join('\n')}
${legend.join('')}
<text x="${WIDTH / 2}" y="${height - 8}" class="middle">identifications offered per second</text>
</svg>`)
