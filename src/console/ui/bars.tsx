// Shares as bars, with their figures in words beside them.

import { percent, wholeText } from '../lib/format.ts'

export interface Bar {
  readonly name: string
  readonly count: number
  /** Of one. */
  readonly share: number
}

export function Bars({ of: bars }: { readonly of: readonly Bar[] }) {
  const most = Math.max(...bars.map(({ share }) => share), Number.MIN_VALUE)
  return (
    <ul class="bars">
      {bars.map(({ name, count: events, share }) => (
        <li key={name}>
          <span>{name}</span>
          <span class="number">
            {wholeText(events)} <span class="quiet">({percent(share)})</span>
          </span>
          <svg class="track" aria-hidden="true" viewBox="0 0 100 4" preserveAspectRatio="none">
            <rect width="100" height="4" rx="1" />
            <rect width={(100 * share) / most} height="4" rx="1" />
          </svg>
        </li>
      ))}
    </ul>
  )
}
