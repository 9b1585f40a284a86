// Visits by day, each with what was other than at the visit before.

import { dayText } from '../../lib/format.ts'
import type { Event } from '../../lib/types.ts'

export interface TimelineVisit {
  readonly event: Event
  /** Sentences; none for the first visit that is known. */
  readonly changes: readonly string[]
}
export interface Day {
  readonly day: string
  readonly visits: readonly TimelineVisit[]
}

const COMPARED: readonly (readonly [string, (event: Event) => string | null])[] = [
  ['Device', ({ device }) => [device.platform, device.model ?? device.gpu].filter(Boolean).join(' ')],
  ['Browser', ({ device }) => device.browser],
  ['Network', ({ ip }) => ip.asnName ?? ip.address],
  ['Country', ({ ip }) => ip.country],
  ['Account', ({ linkedId }) => linkedId],
]

/** `events` newest first, as the API gives them. */
export function timelineOf(events: readonly Event[]): readonly Day[] {
  const days: { day: string; visits: TimelineVisit[] }[] = []
  for (const [i, event] of events.entries()) {
    const before = events[i + 1]
    const changes =
      before === undefined
        ? []
        : COMPARED.flatMap(([name, read]) => {
            const [was, is] = [read(before), read(event)]
            return was === is || was === null || is === null ? [] : [`${name} changed: ${was} → ${is}`]
          })
    const day = dayText(event.timestamp)
    const last = days.at(-1)
    if (last?.day === day) last.visits.push({ event, changes })
    else days.push({ day, visits: [{ event, changes }] })
  }
  return days
}
