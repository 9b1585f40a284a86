// Draws a chart over time in UTC with uPlot in the colours of the page, and again when its place changes its width.

import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { PlotSeries } from './series.ts'

const FILL_ALPHA = '33'

/** Draws, and again when the theme or the width of the place changes. Returns what takes it away. */
export function draw(
  place: HTMLElement,
  at: readonly number[],
  series: readonly PlotSeries[],
  height: number,
): () => void {
  let plot = drawOnce(place, at, series, height)
  const again = () => {
    plot.destroy()
    plot = drawOnce(place, at, series, height)
  }
  const theme = matchMedia('(prefers-color-scheme: dark)')
  theme.addEventListener('change', again)
  const watch = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height }))
  watch.observe(place)
  return () => {
    watch.disconnect()
    theme.removeEventListener('change', again)
    plot.destroy()
  }
}

function drawOnce(place: HTMLElement, at: readonly number[], series: readonly PlotSeries[], height: number): uPlot {
  const style = getComputedStyle(document.documentElement)
  const token = (name: string) => style.getPropertyValue(name).trim()
  const axis = { stroke: token('--quiet'), grid: { stroke: token('--line'), width: 1 }, ticks: { show: false } }
  const colour = (name: string) => token(`--series-${name}`) || token('--accent')
  return new uPlot(
    {
      width: place.clientWidth,
      height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
      legend: { show: false },
      cursor: { y: false },
      axes: [axis, { ...axis, size: 56 }],
      series: [
        {},
        ...series.map(({ name }) => ({
          label: name,
          stroke: colour(name),
          fill: `${colour(name)}${FILL_ALPHA}`,
          width: 2,
          points: { show: at.length < 2 },
        })),
      ],
    },
    [at.map((ms) => ms / 1_000), ...series.map(({ values }) => [...values])],
    place,
  )
}
