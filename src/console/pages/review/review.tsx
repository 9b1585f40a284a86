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

/** Those without a verdict can only be asked for among all. */
const ASKS = ['block', 'challenge', 'allow', undefined] as const

/** How far the events of each of ASKS were read; null: to the end. */
type Cursors = readonly (string | null)[]
interface Place {
  /** How often somebody asked for events. */
  readonly round: number
  readonly cursors: Cursors | null
  /** Visitors of the events before. */
  readonly seen: ReadonlySet<string>
}
interface Batch {
  readonly queue: readonly Event[]
  readonly cursors: Cursors
}

export function Review() {
  const [place, setPlace] = useState<Place>({ round: 0, cursors: null, seen: new Set() })
  const [done, setDone] = useState(0)
  const loaded = useLoadBy(`${environment.value} review ${place.round}`, (signal) => readBatch(place, signal))
  const round = place.round + 1
  return (
    <Page
      title="Review"
      about="Labels are what backtests measure precision, recall and false positives by. Blocked and challenged events teach most, so they come first."
    >
      <Shown of={loaded}>
        {({ queue, cursors }) => (
          <Queue
            queue={queue}
            done={done}
            labelled={() => setDone((before) => before + 1)}
            again={() => {
              setDone(0)
              setPlace({ round, cursors: null, seen: new Set() })
            }}
            goOn={
              cursors.every((cursor) => cursor === null)
                ? null
                : () => {
                    const seen = new Set([...place.seen, ...queue.map(({ visitorId }) => visitorId)])
                    setPlace({ round, cursors, seen })
                  }
            }
          />
        )}
      </Shown>
    </Page>
  )
}

/** The next unlabelled ones of each verdict and of none; one visitor once, because its events are alike. */
async function readBatch({ cursors, seen: before }: Place, signal: AbortSignal): Promise<Batch> {
  const pages = await Promise.all(
    ASKS.map(async (verdict, i): Promise<Pick<CursorPage<Event>, 'data' | 'nextCursor'>> => {
      const cursor = cursors?.[i]
      if (cursor === null) return { data: [], nextCursor: null }
      return call('/v1/events', { query: { verdict, label: 'none', fields: 'full', limit: EACH, cursor }, signal })
    }),
  )
  const [blocked = [], challenged = [], allowed = [], all = []] = pages.map(({ data }) => data)
  const undecided = all.filter(({ verdict }) => verdict === null)
  // Of those that were let in, the suspicious ones first: a miss is more likely among them.
  const suspect = (event: Event) => event.scores?.suspect ?? 0
  const letIn = [...allowed, ...undecided].sort((a, b) => suspect(b) - suspect(a))
  const seen = new Set(before)
  const fresh = ({ visitorId }: Event) => !seen.has(visitorId) && seen.add(visitorId)
  return {
    queue: [...blocked, ...challenged, ...letIn].filter(fresh),
    cursors: pages.map(({ nextCursor }) => nextCursor),
  }
}

function Queue({
  queue,
  done,
  labelled,
  again,
  goOn,
}: {
  readonly queue: readonly Event[]
  /** How many were labelled, of those before as well. */
  readonly done: number
  readonly labelled: () => void
  readonly again: () => void
  /** null: there is nothing behind the queue. */
  readonly goOn: (() => void) | null
}) {
  const [at, setAt] = useState(0)
  const act = useAct()
  const event = queue[at]
  const mayLabel = can('events:write')

  const label = (value: 'fraud' | 'legitimate') => {
    if (event === undefined || !mayLabel) return
    void act
      .run(() => call(`/v1/events/${event.requestId}`, { method: 'PATCH', body: { label: value } }))
      .then((isDone) => {
        if (!isDone) return
        labelled()
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

  if (event === undefined) return <AtEnd isEmpty={queue.length === 0} done={done} again={again} goOn={goOn} />
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

function AtEnd({
  isEmpty,
  done,
  again,
  goOn,
}: Pick<Parameters<typeof Queue>[0], 'done' | 'again' | 'goOn'> & { readonly isEmpty: boolean }) {
  const labelled = `${wholeText(done)} labelled`
  return (
    <section class="card">
      {goOn === null ? (
        <Empty title={isEmpty && done === 0 ? 'Nothing to review' : `That was all: ${labelled}`}>
          <button type="button" onClick={again}>
            Look again
          </button>
        </Empty>
      ) : (
        <Empty title={`There are older ones: ${labelled}`}>
          <button type="button" class="primary" onClick={goOn}>
            Go on
          </button>
        </Empty>
      )}
    </section>
  )
}
