// Events as a text file, RFC 4180: one per line, the members of the Event under their dotted paths, in pages that are read while those
// before leave.

import type { StoredEvent } from '../../domain/event.ts'
import type { Plan } from '../../domain/workspace.ts'
import { presentEvent, scoresVisible } from '../../events/present.ts'
import type { EventsPage } from '../../reads/events.ts'
import type { PacedSteps } from '../paced-steps.ts'

export const CSV_ROWS_MAX = 100_000
/** A read costs a tenth of a second before its first row. */
const ROWS_PER_READ = 1_000
/** Written in one step. */
const ROWS_AT_ONCE = 125

const SCORES: readonly string[] = ['scores.suspect', 'scores.bot', 'scores.ato', 'scores.abuse']
const PATHS: readonly string[] = [
  'requestId',
  'timestamp',
  'visitorId',
  'visitorFound',
  'confidence',
  'possibleVisitorId',
  'possibleConfidence',
  'firstSeenAt',
  'identity.method',
  'verdict',
  'challengeType',
  'matchedRule.id',
  'matchedRule.name',
  ...SCORES,
  'signals.bot.detected',
  'signals.vpn.detected',
  'signals.vpn.provider',
  'signals.incognito',
  'signals.tampered',
  'signals.emulator',
  'signals.proxy',
  'signals.tor',
  'signals.rootedDevice',
  'signals.clonedApp',
  'device.platform',
  'device.osVersion',
  'device.browser',
  'device.type',
  'device.model',
  'device.appVersion',
  'device.language',
  'device.timezone',
  'ip.address',
  'ip.country',
  'ip.region',
  'ip.city',
  'ip.asn',
  'ip.asnName',
  'ip.datacenter',
  'ip.blocklisted',
  'request.keyKind',
  'linkedId',
  'email',
  'url',
  'tag',
  'label',
]

/** With what a spreadsheet would take for a formula: it gets an apostrophe before it, which that shows as text. */
const FORMULA = /^[=+\-@\t\r\n]/
const QUOTED = /[",\r\n]/

/** A cell; numbers, flags and moments are nobody's formulas. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const safe = FORMULA.test(text) ? `'${text}` : text
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

const lineOf = (cells: readonly string[]): string => `${cells.join(',')}\r\n`

function valueAt(event: unknown, path: readonly string[]): unknown {
  let value = event
  for (const name of path) value = (value as Record<string, unknown> | null)?.[name]
  return value
}

type Last = { readonly ts: number; readonly requestId: string } | null

export interface EventsCsvNeeds {
  readonly plan: Plan
  readonly turns: PacedSteps
  /** A page of events, newest first, behind the last one of the page before. */
  readonly read: (limit: number, from: Last) => Promise<EventsPage<StoredEvent>>
}

/** `head`: the names of the columns. Fails when the first lines cannot be read; what fails later cuts the file off. */
export async function eventsCsv({
  plan,
  turns,
  read,
}: EventsCsvNeeds): Promise<{ head: string; rest: AsyncGenerator<string, void> }> {
  const paths = PATHS.filter((path) => scoresVisible(plan) || !SCORES.includes(path))
  const names = paths.map((path) => path.split('.'))
  const linesOf = (events: readonly StoredEvent[]): Promise<string> =>
    turns.take(() =>
      events
        .map((event) => {
          const shown = presentEvent(event, plan)
          return lineOf(names.map((path) => cellOf(valueAt(shown, path))))
        })
        .join(''),
    )
  const behind = ({ events }: EventsPage<StoredEvent>): Last => {
    const last = events.at(-1)
    return last === undefined ? null : { ts: last.timestamp, requestId: last.requestId }
  }

  async function* slicesOf({ events }: EventsPage<StoredEvent>): AsyncGenerator<string, void> {
    for (let at = 0; at < events.length; at += ROWS_AT_ONCE) yield await linesOf(events.slice(at, at + ROWS_AT_ONCE))
  }

  async function* restOf(first: EventsPage<StoredEvent>): AsyncGenerator<string, void> {
    let rows = 0
    for (let page: EventsPage<StoredEvent> | null = first; page !== null; ) {
      rows += page.events.length
      // While it is written the next one is read.
      const wanted = page.hasMore ? Math.min(ROWS_PER_READ, CSV_ROWS_MAX - rows) : 0
      const next: Promise<EventsPage<StoredEvent> | null> =
        wanted > 0 ? read(wanted, behind(page)) : Promise.resolve(null)
      next.catch(() => undefined)
      yield* slicesOf(page)
      page = await next
    }
  }

  const first = await read(ROWS_PER_READ, null)
  return { head: lineOf(paths), rest: restOf(first) }
}
