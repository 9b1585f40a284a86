// Charts of what was measured as SVG, one under the other: lines with a dot for each figure, or without where there are many.

export interface Line {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface Axis {
  readonly from: number
  readonly to: number
  readonly isLogarithmic?: boolean
  readonly ticks: readonly number[]
}

export interface Chart {
  readonly title: string
  readonly lines: readonly Line[]
  readonly x: Axis
  readonly y: Axis
}

const WIDTH = 720
const HEIGHT = 300
const LEFT = 64
const RIGHT = 20
const TOP = 40
const GAP = 70
/** More than so many figures are a line without dots. */
const DOTS_MAX = 40
const COLOURS = ['#9a6700', '#0a7d5a', '#2563b8', '#c53030', '#8b3fa8']
const LETTER_PX = 7

/** 0 at the beginning of the axis, 1 at its end; what lies outside stands at the border. */
function shareOf({ from, to, isLogarithmic = false }: Axis, value: number): number {
  const clamped = Math.min(to, Math.max(from, value))
  return isLogarithmic ? Math.log(clamped / from) / Math.log(to / from) : (clamped - from) / (to - from)
}

const said = (value: number): string => {
  if (value >= 1_000_000) return `${value / 1_000_000} M`
  return String(Number(value.toPrecision(4)))
}

/** From 0 to a round number that `max` does not exceed. */
export function upTo(max: number): Axis {
  const rough = Math.max(max, 1e-9) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((one) => one * power >= rough) ?? 10) * power
  return { from: 0, to: 4 * step, ticks: [0, 1, 2, 3, 4].map((n) => n * step) }
}

/** Whole powers of ten around all values. */
export function decades(min: number, max: number): Axis {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))]
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i))
  return { from: 10 ** first, to: 10 ** last, isLogarithmic: true, ticks }
}

function legend(lines: readonly Line[], top: number): string {
  let right = WIDTH - RIGHT
  const names = lines.map(({ name }, i) => {
    const text = `<text x="${right}" y="${top - 12}" class="end" fill="${COLOURS[i % COLOURS.length]}">${name}</text>`
    right -= name.length * LETTER_PX + 14
    return text
  })
  return names.join('')
}

function drawLine({ points }: Line, colour: string | undefined, place: (point: readonly [number, number]) => string) {
  const places = points.filter(([, y]) => Number.isFinite(y)).map(place)
  const dots = places.length > DOTS_MAX ? [] : places
  const circles = dots.map((at) => {
    const [cx, cy] = at.split(',')
    return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`
  })
  const width = dots.length === 0 ? 1.2 : 2
  return `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="${width}"/>${circles.join('')}`
}

function draw({ title, lines, x, y }: Chart, top: number): string {
  const across = (value: number) => (LEFT + shareOf(x, value) * (WIDTH - LEFT - RIGHT)).toFixed(1)
  const down = (value: number) => (top + HEIGHT - shareOf(y, value) * HEIGHT).toFixed(1)
  const grid = y.ticks.map(
    (tick) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${down(tick)}" y2="${down(tick)}" class="grid"/><text x="${LEFT - 8}" y="${Number(down(tick)) + 4}" class="end">${said(tick)}</text>`,
  )
  const marks = x.ticks.map(
    (tick) => `<text x="${across(tick)}" y="${top + HEIGHT + 18}" class="middle">${said(tick)}</text>`,
  )
  const drawn = lines.map((line, i) =>
    drawLine(line, COLOURS[i % COLOURS.length], ([at, value]) => `${across(at)},${down(value)}`),
  )
  return `<text x="${LEFT}" y="${top - 12}" class="title">${title}</text>${grid.join('')}${marks.join('')}${drawn.join('')}${legend(lines, top)}`
}

/** `below`: what all x axes measure, with its unit. */
export function drawCharts(charts: readonly Chart[], below: string): string {
  const height = TOP + charts.length * (HEIGHT + GAP) + 10
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">
<style>.grid{stroke:#d0d7de}.end{text-anchor:end}.middle{text-anchor:middle}.title{font-weight:600}</style>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
${charts.map((chart, i) => draw(chart, TOP + i * (HEIGHT + GAP))).join('\n')}
<text x="${WIDTH / 2}" y="${height - 8}" class="middle">${below}</text>
</svg>
`
}
