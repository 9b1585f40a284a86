// Conditions with what an event had and whether they hold.

import type { Simulation } from '../../lib/types.ts'
import { operatorWord } from '../rules/words.ts'

export function Trace({ of: trace, isTruncated }: { readonly of: Simulation['trace']; readonly isTruncated: boolean }) {
  return (
    <>
      <ul class="plain-list trace">
        {trace.map(({ path, field, operator, value, actual, result }) => (
          <li key={path}>
            <span aria-hidden="true">{result ? '✓' : '✗'}</span>
            <span>
              <code>{field}</code> {operatorWord(operator)} <code>{JSON.stringify(value)}</code>
              <br />
              <span class="quiet small">
                {actual === null
                  ? 'The event has no value, so this does not hold'
                  : `The event has ${JSON.stringify(actual)}`}
                <span class="unseen">{result ? '; it holds' : '; it does not hold'}</span>
              </span>
            </span>
          </li>
        ))}
      </ul>
      {isTruncated && <p class="quiet small">More conditions were cut off.</p>}
    </>
  )
}
