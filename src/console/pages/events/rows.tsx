// An event as a line of a table.

import { percent, signalWordOf } from '../../lib/format.ts'
import type { Event } from '../../lib/types.ts'
import { Id, MomentText, VerdictChip } from '../../ui/words.tsx'

export const EVENT_HEAD = [
  'Time',
  'Verdict',
  'Visitor',
  { number: 'Confidence' },
  'Signals',
  'Device',
  'Address',
  'Account',
  'Rule',
]

/** The signals that were raised; what could not be told is counted apart, because it is no "no". */
export function raised({ signals, signalDetails }: Event) {
  const on = Object.entries(signals)
    .filter(([, value]) => (typeof value === 'object' ? value.detected : value))
    .map(([name]) => name)
  const untold = Object.values(signalDetails).filter((detail) => detail?.state === 'undetermined').length
  return { on, untold }
}

export function EventCells({ of: event }: { readonly of: Event }) {
  const { on, untold } = raised(event)
  return (
    <>
      <td class="once">
        <MomentText at={event.timestamp} />
        <br />
        <Id of={event.requestId} />
      </td>
      <td>
        <VerdictChip of={event.verdict} />
      </td>
      <td>
        <Id of={event.visitorId} />
        <br />
        <span class="quiet small">{event.visitorFound ? 'returning' : 'new'}</span>
      </td>
      <td class="number">{percent(event.confidence)}</td>
      <td>
        <span class="row">
          {on.map((name) => (
            <span key={name} class="chip" data-kind="bad">
              {signalWordOf(name)}
            </span>
          ))}
          {untold > 0 && (
            <span class="chip" data-kind="open">
              {untold} undetermined
            </span>
          )}
        </span>
      </td>
      <td class="wide">
        {event.device.platform} · {event.device.browser}
      </td>
      <td class="once">
        {event.ip.address}
        <br />
        <span class="quiet small">{event.ip.country ?? 'country not known'}</span>
      </td>
      <td class="wide">{event.linkedId ?? <span class="quiet">none</span>}</td>
      <td class="wide">{event.matchedRule?.name ?? <span class="quiet">none</span>}</td>
    </>
  )
}
