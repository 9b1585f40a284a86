// Events that are worth a label, one after the other: f for fraud, l for legitimate, s to skip.

import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can, environment } from '../../lib/api.ts'
import { percent, signalWordOf, wholeText } from '../../lib/format.ts'
import { useLoadBy } from '../../lib/load.ts'
import type { CursorPage, Event } from '../../lib/types.ts'
import { Page } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { FactList, Id, MomentText, VerdictChip } from '../../ui/words.tsx'
import { raised } from '../events/rows.tsx'

const EACH = 50
const LABELS = [
  ['f', 'fraud', 'Fraud'],
  ['l', 'legitimate', 'Legitimate'],
] as const

export function Review() {
  const loaded = useLoadBy(`${environment.value} review`, readQueue)
  return (
    <Page
      title="Review"
      about="Labels are what backtests measure precision, recall and false positives by. Blocked and challenged events teach most, so they come first."
    >
      <Shown of={loaded}>
        {(queue) => <Queue key={queue.map(({ requestId }) => requestId).join()} queue={queue} reload={loaded.reload} />}
      </Shown>
    </Page>
  )
}

/** Unlabelled ones of each verdict; one visitor once, because its events are alike. */
async function readQueue(signal: AbortSignal): Promise<readonly Event[]> {
  const verdicts = ['block', 'challenge', 'allow'] as const
  const found = await Promise.all(
    verdicts.map((verdict) =>
      call<CursorPage<Event>>('/v1/events', { query: { verdict, label: 'none', fields: 'full', limit: EACH }, signal }),
    ),
  )
  const seen = new Set<string>()
  const fresh = ({ visitorId }: Event) => !seen.has(visitorId) && seen.add(visitorId)
  const [blocked = [], challenged = [], allowed = []] = found.map(({ data }) => data)
  // Of those that were allowed, the suspicious ones first: a miss is more likely among them.
  const suspect = (event: Event) => event.scores?.suspect ?? 0
  return [...blocked, ...challenged, ...[...allowed].sort((a, b) => suspect(b) - suspect(a))].filter(fresh)
}

function Queue({ queue, reload }: { readonly queue: readonly Event[]; readonly reload: () => void }) {
  const [at, setAt] = useState(0)
  const [done, setDone] = useState(0)
  const act = useAct()
  const event = queue[at]
  const mayLabel = can('events:write')

  const label = (value: 'fraud' | 'legitimate') => {
    if (event === undefined || !mayLabel) return
    void act
      .run(() => call(`/v1/events/${event.requestId}`, { method: 'PATCH', body: { label: value } }))
      .then((isDone) => {
        if (!isDone) return
        setDone((before) => before + 1)
        setAt((before) => before + 1)
      })
  }
  useEffect(() => {
    function onKey(pressed: KeyboardEvent): void {
      const isTyping =
        pressed.target instanceof Element && pressed.target.closest('input, select, textarea, dialog') !== null
      // A key that is held would label events that nobody has seen.
      if (isTyping || pressed.repeat || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return
      const found = LABELS.find(([key]) => key === pressed.key)
      if (found !== undefined) label(found[1])
      if (pressed.key === 's') setAt((before) => Math.min(queue.length, before + 1))
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })

  if (event === undefined) {
    return (
      <section class="card">
        <Empty title={queue.length === 0 ? 'Nothing to review' : `That was all: ${wholeText(done)} labelled`}>
          <button type="button" onClick={reload}>
            Look again
          </button>
        </Empty>
      </section>
    )
  }
  const { on, untold } = raised(event)
  return (
    <section class="card" aria-label={`Event ${at + 1} of ${queue.length}`}>
      <div class="row spread">
        <div class="row">
          <VerdictChip of={event.verdict} />
          <Id of={event.requestId} whole />
        </div>
        <span class="quiet" role="status">
          {wholeText(at + 1)} of {wholeText(queue.length)}, {wholeText(done)} labelled
        </span>
      </div>
      <FactList
        of={[
          ['Time', <MomentText key="t" at={event.timestamp} />],
          ['Visitor', <Id key="v" of={event.visitorId} whole />],
          ['Rule', event.matchedRule?.name ?? 'none'],
          ['Signals', on.length === 0 ? 'none raised' : on.map(signalWordOf).join(', ')],
          ['Not told', untold === 0 ? 'everything could be told' : `${untold} undetermined`],
          ['Suspect', event.scores?.suspect],
          ['Confidence', percent(event.confidence)],
          ['Account', event.linkedId],
          ['Device', `${event.device.platform} · ${event.device.browser}`],
          ['Network', [event.ip.asnName, event.ip.country].filter(Boolean).join(', ') || event.ip.address],
        ]}
      />
      <Problem error={act.error} />
      <div class="row">
        {mayLabel &&
          LABELS.map(([key, value, text]) => (
            <button key={key} type="button" class="primary" disabled={act.isBusy} onClick={() => label(value)}>
              {text} <kbd>{key}</kbd>
            </button>
          ))}
        <button type="button" onClick={() => setAt(at + 1)}>
          Skip <kbd>s</kbd>
        </button>
        <Link href={`/events/${event.requestId}`}>All of it</Link>
      </div>
    </section>
  )
}
