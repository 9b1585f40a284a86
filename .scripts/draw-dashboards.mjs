// Draws dashboards of deploy/grafana as SVG, with what a Prometheus answers to their expressions: for the docs, where no Grafana is at hand.
// node .scripts/draw-dashboards.mjs --prometheus http://127.0.0.1:9090 [--job fingerpost] [--minutes 15] [--out deploy/grafana] [name …]
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { formatOf, ticksUpTo } from './dashboards/axis.mjs'

const FOLDER = fileURLToPath(new URL('../deploy/grafana', import.meta.url))
const [COLUMN, LINE, GAP, MARGIN, HEADER] = [50, 34, 8, 12, 46]
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 12, 30, 18]
const LEGEND = { line: 15, max: 4, columnPx: 230 }
const COLOURS = 10

/** What Grafana puts in for its variables. */
export const expressionOf = (expr, { job, instance }, rateSeconds = 60) =>
  expr.replaceAll('$__rate_interval', `${rateSeconds}s`).replaceAll('$job', job).replaceAll('$instance', instance)

const escaped = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
const legendOf = (format, metric) => format.replace(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? '')
const text = (x, y, said, kind) => `<text x="${x}" y="${y}" class="${kind}">${escaped(said)}</text>`
const clipped = (said, max) => (said.length > max ? `${said.slice(0, max - 1)}…` : said)

/** Points without a gap between them; where nothing was measured a line is broken. */
function runsOf(points, stepSeconds) {
  const runs = []
  let last = Number.NEGATIVE_INFINITY
  for (const point of points) {
    if (!Number.isFinite(point.value)) continue
    if (point.at - last > 1.5 * stepSeconds) runs.push([])
    runs.at(-1).push(point)
    last = point.at
  }
  return runs
}

/** A point by itself is seen as a short line. */
function polyline(run, x, y, kind) {
  const points = run.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
  if (run.length === 1) points.push(`${(x(run[0].at) + 1.5).toFixed(1)},${y(run[0].value).toFixed(1)}`)
  return `<polyline class="${kind}" points="${points.join(' ')}"/>`
}

function polygon(run, x, y, kind) {
  const above = run.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
  const below = run.map(({ at, base }) => `${x(at).toFixed(1)},${y(base).toFixed(1)}`)
  return `<polygon class="${kind}" points="${[...above, ...below.reverse()].join(' ')}"/>`
}

/** Each series on the sum of those before it. */
function stacked(series) {
  const sums = new Map()
  return series.map((one) => ({
    ...one,
    points: one.points.map(({ at, value }) => {
      const base = sums.get(at) ?? 0
      const sum = base + (Number.isFinite(value) ? value : 0)
      sums.set(at, sum)
      return { at, value: sum, base }
    }),
  }))
}

const finite = (series) => series.flatMap(({ points }) => points.map(({ value }) => value)).filter(Number.isFinite)
const lastOf = ({ points }) => points.findLast(({ value }) => Number.isFinite(value))?.value
const alertOf = ({ fieldConfig }) => fieldConfig.defaults.thresholds.steps.find(({ value }) => value !== null)?.value

function drawNumber(panel, series, { width, height }, { from, to, stepSeconds }) {
  const format = formatOf(panel.fieldConfig.defaults.unit)
  const value = series.length === 0 ? undefined : lastOf(series[0])
  const alert = alertOf(panel)
  const kind = value !== undefined && alert !== undefined && value >= alert ? 'number bad' : 'number good'
  const max = Math.max(...finite(series), 0) || 1
  const x = (at) => 10 + ((at - from) / (to - from)) * (width - 20)
  const y = (one) => height - 8 - (one / max) * 30
  const spark = series.slice(0, 1).flatMap(({ points }) => runsOf(points, stepSeconds))
  return [
    ...spark.map((run) => polyline(run, x, y, 'spark')),
    text(width / 2, height / 2 + 14, value === undefined ? 'no data' : format(value), kind),
  ]
}

function drawLegend(series, { width, height }, format) {
  const columns = Math.max(1, Math.floor((width - 20) / LEGEND.columnPx))
  const room = columns * LEGEND.max
  const shown = series.length > room ? series.slice(0, room - 1) : series
  const rows = Math.ceil(Math.min(series.length, room) / columns)
  const top = height - rows * LEGEND.line
  const parts = shown.map((one, at) => {
    const [x, y] = [12 + (at % columns) * LEGEND.columnPx, top + Math.floor(at / columns) * LEGEND.line]
    const last = lastOf(one)
    const said = `${clipped(one.name, 28)}  ${last === undefined ? '' : format(last)}`
    return `<rect class="f${at % COLOURS}" x="${x}" y="${y - 8}" width="10" height="4"/>${text(x + 14, y - 3, said, 'legend')}`
  })
  if (shown.length < series.length) {
    parts.push(
      text(
        12 + (shown.length % columns) * LEGEND.columnPx,
        height - LEGEND.line - 3,
        `+ ${series.length - shown.length} more`,
        'legend',
      ),
    )
  }
  return { parts, height: rows * LEGEND.line + 12 }
}

function drawLines(panel, series, size, { from, to, stepSeconds }) {
  const format = formatOf(panel.fieldConfig.defaults.unit)
  const isStacked = panel.fieldConfig.defaults.custom.stacking.mode === 'normal'
  const legend = drawLegend(series, size, format)
  const bottom = size.height - BOTTOM - legend.height
  const placed = isStacked ? stacked(series) : series
  const alert = alertOf(panel)
  const most = Math.max(...finite(placed), 0)
  // A line far above what is measured would flatten it.
  const isAlertShown = alert !== undefined && alert <= most * 3
  const ticks = ticksUpTo(Math.max(most, isAlertShown ? alert : 0), panel.fieldConfig.defaults.unit)
  const max = ticks.at(-1)
  const x = (at) => LEFT + ((at - from) / (to - from)) * (size.width - LEFT - RIGHT)
  const y = (value) => bottom - (value / max) * (bottom - TOP)
  const grid = ticks.map(
    (tick) =>
      `<line class="grid" x1="${LEFT}" x2="${size.width - RIGHT}" y1="${y(tick)}" y2="${y(tick)}"/>${text(LEFT - 6, y(tick) + 4, format(tick), 'tick end')}`,
  )
  const seconds = Math.round(to - from)
  const times = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const ago = Math.round(seconds * (1 - share))
    const said = ago === 0 ? 'now' : ago >= 120 ? `−${Math.round(ago / 60)} min` : `−${ago} s`
    return text(
      x(from + share * seconds),
      bottom + 14,
      said,
      share === 1 ? 'tick end' : share === 0 ? 'tick' : 'tick middle',
    )
  })
  const drawn = placed.flatMap(({ points }, at) => {
    const runs = runsOf(points, stepSeconds)
    const areas = isStacked ? runs.map((run) => polygon(run, x, y, `area f${at % COLOURS}`)) : []
    return [...areas, ...runs.map((run) => polyline(run, x, y, `line c${at % COLOURS}`))]
  })
  const limit = isAlertShown
    ? [`<line class="alert" x1="${LEFT}" x2="${size.width - RIGHT}" y1="${y(alert)}" y2="${y(alert)}"/>`]
    : []
  const none = series.length === 0 ? [text((LEFT + size.width) / 2, (TOP + bottom) / 2, 'no data', 'none')] : []
  return [...grid, ...times, ...drawn, ...limit, ...legend.parts, ...none]
}

async function drawPanel(panel, view) {
  const { x, y, w, h } = panel.gridPos
  const place = `translate(${MARGIN + x * COLUMN} ${HEADER + y * LINE})`
  const size = { width: w * COLUMN - GAP, height: h * LINE - GAP }
  if (panel.type === 'row') return `<g transform="${place}">${text(0, 18, panel.title, 'row')}</g>`
  const series = []
  for (const { expr, legendFormat } of panel.targets) {
    for (const { metric, values } of await view.range(expressionOf(expr, view.chosen, view.rateSeconds))) {
      series.push({
        name: legendOf(legendFormat, metric),
        points: values.map(([at, value]) => ({ at, value: Number(value) })),
      })
    }
  }
  series.sort((a, b) => (a.name < b.name ? -1 : 1))
  const drawn = panel.type === 'stat' ? drawNumber(panel, series, size, view) : drawLines(panel, series, size, view)
  return [
    `<g transform="${place}"><title>${escaped(panel.description)}</title>`,
    `<rect class="box" width="${size.width}" height="${size.height}" rx="4"/>`,
    text(10, 18, panel.title, 'title'),
    ...drawn,
    '</g>',
  ].join('\n')
}

const LIGHT = [
  '#2563b8',
  '#c2571a',
  '#2f855a',
  '#8b3fa8',
  '#b7791f',
  '#0e7490',
  '#c53030',
  '#5a67d8',
  '#718096',
  '#97266d',
]
const DARK = [
  '#6ea8f0',
  '#f0935a',
  '#62c493',
  '#c58ce0',
  '#e3b34f',
  '#4fc3dd',
  '#f08080',
  '#98a2f5',
  '#a9b6c6',
  '#e07fb8',
]
const coloured = (colours) =>
  colours.map((colour, i) => `.c${i} { stroke: ${colour} } .f${i} { fill: ${colour} }`).join(' ')
const STYLE = `text { font-family: system-ui, sans-serif; font-size: 11px; fill: #52606d } .page { fill: #eef1f4 } .box { fill: #fff; stroke: #d5dce3 }
.name { font-size: 18px; font-weight: 600; fill: #17222d } .title { font-size: 13px; font-weight: 600; fill: #17222d } .row { font-size: 14px; font-weight: 600; fill: #17222d }
.end { text-anchor: end } .middle { text-anchor: middle } .grid { stroke: #e4e9ee } .line { fill: none; stroke-width: 1.4 } .area { fill-opacity: .35 } .alert { stroke: #c53030; stroke-dasharray: 5 4 }
.spark { fill: none; stroke: #9fb3c8; stroke-width: 1.2 } .number { font-size: 26px; font-weight: 600; text-anchor: middle } .good { fill: #2f855a } .bad { fill: #c53030 } .none { text-anchor: middle; fill: #9aa7b4 }
${coloured(LIGHT)}
@media (prefers-color-scheme: dark) { text { fill: #9aa7b4 } .page { fill: #11161b } .box { fill: #1a2129; stroke: #303a44 } .name, .title, .row { fill: #e6ebf0 } .grid { stroke: #2b343d } .good { fill: #62c493 } .bad { fill: #f08080 } ${coloured(DARK)} }`

/** The picture of a dashboard. `view`: `range(expression)`, what is chosen, and the time that is shown. */
export async function drawDashboard(dashboard, view) {
  const panels = []
  for (const panel of dashboard.panels) panels.push(await drawPanel(panel, view))
  const width = 2 * MARGIN + 24 * COLUMN - GAP
  const height = HEADER + Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * LINE + MARGIN
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(dashboard.title)}">
<style>${STYLE}</style>
<rect class="page" width="${width}" height="${height}"/>
${text(MARGIN, 30, dashboard.title, 'name')}
${panels.join('\n')}
</svg>
`
}

/** Asks a Prometheus as Grafana does. */
export function openView(url, { job, minutes }) {
  const to = Math.floor(Date.now() / 1_000)
  const from = to - minutes * 60
  const stepSeconds = Math.max(1, Math.round((to - from) / 300))
  async function range(query) {
    const asked = new URLSearchParams({ query, start: String(from), end: String(to), step: String(stepSeconds) })
    const answer = await (await fetch(`${url}/api/v1/query_range?${asked}`)).json()
    if (answer.status !== 'success') throw new Error(`${answer.error}: ${query}`)
    return answer.data.result
  }
  return { range, chosen: { job, instance: '.*' }, from, to, stepSeconds, rateSeconds: 4 * Math.max(5, stepSeconds) }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      prometheus: { type: 'string', default: 'http://127.0.0.1:9090' },
      job: { type: 'string', default: 'fingerpost' },
      minutes: { type: 'string', default: '15' },
      out: { type: 'string', default: FOLDER },
    },
  })
  const view = openView(values.prometheus, { job: values.job, minutes: Number(values.minutes) })
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.json'))) {
    const name = file.replace('.json', '')
    if (positionals.length > 0 && !positionals.includes(name)) continue
    const dashboard = JSON.parse(readFileSync(join(FOLDER, file), 'utf8'))
    writeFileSync(join(values.out, `${name}.svg`), await drawDashboard(dashboard, view))
  }
}
