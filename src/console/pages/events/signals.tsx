// The signals of an event with their evidence, and its scores with what they rest on.

import { percent, signalWordOf, span } from '../../lib/format.ts'
import type { Event, SignalDetail } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { SignalChip } from '../../ui/words.tsx'

const SCORES = [
  ['bot', 'Bot'],
  ['ato', 'Account takeover'],
  ['abuse', 'Abuse'],
  ['suspect', 'Suspect'],
] as const

export function SignalCards({ event }: { readonly event: Event }) {
  return (
    <>
      <Card title="Signals">
        <ul class="plain-list">
          {Object.keys(event.signals).map((name) => (
            <SignalRow
              key={name}
              name={name}
              detail={(event.signalDetails as Readonly<Record<string, SignalDetail | undefined>>)[name]}
            />
          ))}
        </ul>
      </Card>
      <Card title="Scores">
        {event.scores === undefined ? (
          <p class="quiet">Scores are part of the plan Pro and above.</p>
        ) : (
          <dl class="stack">
            {SCORES.map(([name, words]) => (
              <Score key={name} name={name} words={words} event={event} />
            ))}
          </dl>
        )}
      </Card>
    </>
  )
}

function SignalRow({ name, detail }: { readonly name: string; readonly detail: SignalDetail | undefined }) {
  return (
    <li>
      <span class="row spread">
        <strong>{signalWordOf(name)}</strong>
        <SignalChip state={detail?.state ?? 'clear'} />
      </span>
      {detail?.state === 'detected' && (
        <span class="quiet small">
          {percent(detail.confidence)} certain, by {detail.methods.join(', ')} ({detail.source}
          {detail.dataAgeSeconds === null ? '' : `, data ${span(detail.dataAgeSeconds)} old`})
        </span>
      )}
      {detail?.state === 'undetermined' && <span class="quiet small">What was sent cannot tell.</span>}
    </li>
  )
}

function Score({ name, words, event }: { readonly name: string; readonly words: string; readonly event: Event }) {
  const value = event.scores?.[name as keyof NonNullable<Event['scores']>] ?? 0
  const max = name === 'suspect' ? 100 : 1
  const reasons = (event.scoreReasons ?? []).filter(({ score }) => score === name)
  return (
    <div>
      <dt class="row spread">
        <span>{words}</span>
        <strong>{value}</strong>
      </dt>
      <dd>
        <meter min={0} max={max} value={value} aria-label={words} />
        <span class="quiet small">
          {reasons.length === 0
            ? ' nothing counts towards it'
            : reasons.map(({ reason, weight }) => ` ${reason} ${weight > 0 ? '+' : ''}${weight}`).join(',')}
        </span>
      </dd>
    </div>
  )
}
