// A chart over time in UTC, drawn when it is first needed; the same figures are always there as a table.

import { useEffect, useRef, useState } from 'preact/hooks'
import { utcText, wholeText } from '../lib/format.ts'
import type { PlotSeries } from './series.ts'
import { Table } from './table.tsx'

export interface PlotProps {
  readonly label: string
  /** First millisecond of each bucket, which begins by UTC. */
  readonly at: readonly number[]
  readonly series: readonly PlotSeries[]
}

const HEIGHT_PX = 220

export function Plot({ label, at, series }: PlotProps) {
  const [asTable, setAsTable] = useState(false)
  return (
    <div class="stack">
      <div class="row spread">
        <ul class="legend">
          {series.map(({ name }) => (
            <li key={name} data-series={name}>
              {name}
            </li>
          ))}
        </ul>
        <span class="row">
          <span class="quiet small">Times in UTC</span>
          <button type="button" class="slim" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            {asTable ? 'Show chart' : 'Show table'}
          </button>
        </span>
      </div>
      {asTable ? (
        <Table label={label} head={['Time (UTC)', ...series.map(({ name }) => ({ number: name }))]}>
          {at.map((ms, i) => (
            <tr key={ms}>
              <th scope="row">{utcText(ms)}</th>
              {series.map(({ name, values }) => (
                <td key={name} class="number">
                  {wholeText(values[i] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      ) : (
        <Canvas label={label} at={at} series={series} />
      )}
    </div>
  )
}

function Canvas({ label, at, series }: PlotProps) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current
    if (element === null) return
    let isGone = false
    let clean = () => {}
    void import('./draw.ts').then(({ draw }) => {
      if (!isGone) clean = draw(element, at, series, HEIGHT_PX)
    })
    return () => {
      isGone = true
      clean()
    }
  }, [at, series])
  return <div ref={place} class="plot" role="img" aria-label={`${label}. Show table has the figures.`} />
}
