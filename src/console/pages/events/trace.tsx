// Conditions with what an event had and whether they hold.

import type { Simulation } from '../../lib/types.ts'
import { questionOf } from '../rules/words.ts'

type Step = Simulation['trace'][number]

export function Trace({ of: trace, isTruncated }: { readonly of: Simulation['trace']; readonly isTruncated: boolean }) {
  return (
    <>
      <ul class="plain-list trace">
        {trace.map((step) => (
          <li key={step.path}>
            <span aria-hidden="true">{step.result ? '✓' : '✗'}</span>
            <Asked step={step} />
          </li>
        ))}
      </ul>
      {isTruncated && <p class="quiet small">More conditions were cut off.</p>}
    </>
  )
}

function Asked({ step: { field, operator, value, actual, result } }: { readonly step: Step }) {
  const [words, asked] = questionOf(operator, value)
  return (
    <span>
      <code>{field}</code> {words} {asked !== null && <code>{asked}</code>}
      <br />
      <span class="quiet small">
        {actual === null ? 'The event has no value' : `The event has ${JSON.stringify(actual)}`}
        <span class={actual === null ? '' : 'unseen'}>{result ? '; it holds' : '; it does not hold'}</span>
      </span>
    </span>
  )
}
