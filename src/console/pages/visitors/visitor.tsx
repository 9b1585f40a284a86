// One visitor: what is known of it, what it did, who it may belong together with, and what can be done about it.

import { useState } from 'preact/hooks'
import { can } from '../../lib/api.ts'
import { useChosen } from '../../lib/chosen.ts'
import { wholeText } from '../../lib/format.ts'
import type { PageProps } from '../../lib/later.tsx'
import { useEvery, useLoad, usePages } from '../../lib/load.ts'
import type { Event, Visitor } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { FactList, Id, MomentText, VerdictChip } from '../../ui/words.tsx'
import { AddToList } from '../lists/add-to-list.tsx'
import { EraseButton } from './erase.tsx'
import { ExportButton } from './export.tsx'
import { Linked } from './linked.tsx'
import { Merge } from './merge.tsx'
import { Split } from './split.tsx'
import { timelineOf } from './timeline.ts'

const PAGE_EVENTS = 100
/** A visit can be searched a moment after it was decided, and the next may come while somebody looks. */
const LOOK_EVERY_MS = 5_000

export function VisitorPage({ id }: PageProps) {
  const path = `/v1/visitors/${encodeURIComponent(id)}`
  const loaded = useLoad<Visitor>(path)
  return (
    <Page title="Visitor" about={<code>{id}</code>} actions={<CopyCurl path={path} />}>
      <Shown of={loaded}>{(visitor) => <Whole asked={id} visitor={visitor} reload={loaded.reload} />}</Shown>
    </Page>
  )
}

function Whole({
  asked,
  visitor,
  reload,
}: {
  readonly asked: string
  readonly visitor: Visitor
  readonly reload: () => void
}) {
  const { allow, challenge, block } = visitor.previousVerdicts
  return (
    <>
      {asked !== visitor.visitorId && (
        <p class="hint">
          <code>{asked}</code> was merged into this visitor.
        </p>
      )}
      <section class="card">
        <FactList
          of={[
            ['Visitor', <Id key="v" of={visitor.visitorId} whole />],
            ['Last seen', <MomentText key="l" at={visitor.lastSeenAt} />],
            ['First seen', <MomentText key="f" at={visitor.firstSeenAt} />],
            ['Visits', wholeText(visitor.totalVisits)],
            ['Accounts', wholeText(visitor.linkedAccounts)],
            [
              'Verdicts',
              `${wholeText(allow)} allowed, ${wholeText(challenge)} challenged, ${wholeText(block)} blocked`,
            ],
            ['Lists', visitor.lists.length === 0 ? 'none' : visitor.lists.join(', ')],
          ]}
        />
        <div class="row">
          {can('lists:write') && <AddToList values={{ visitor: visitor.visitorId }} done={reload} />}
          {can('visitors:write') && <Merge into={visitor.visitorId} done={reload} />}
          <ExportButton visitorId={visitor.visitorId} />
          {can('visitors:delete') && <EraseButton visitorId={visitor.visitorId} />}
        </div>
      </section>
      <div class="columns">
        <Timeline key={visitor.totalVisits} visitorId={visitor.visitorId} reload={reload} />
        <div class="stack">
          <Card title="Devices">
            <ul class="plain-list">
              {visitor.devices.map(({ platform, browser, gpu }) => (
                <li key={`${platform} ${browser} ${gpu}`}>
                  {platform} · {browser}
                  <br />
                  <span class="quiet small">{gpu ?? 'graphics not known'}</span>
                </li>
              ))}
            </ul>
          </Card>
          <Card title="Addresses">
            <ul class="row plain-list">
              {visitor.ips.map((address) => (
                <li key={address} class="mono">
                  {address}
                </li>
              ))}
            </ul>
          </Card>
          <Linked visitorId={visitor.visitorId} />
        </div>
      </div>
    </>
  )
}

function Timeline({ visitorId, reload }: { readonly visitorId: string; readonly reload: () => void }) {
  const pages = usePages<Event>('/v1/events', { query: { visitorId, fields: 'full', limit: PAGE_EVENTS } })
  const { chosen, toggle, clear } = useChosen()
  const [isSplitting, setIsSplitting] = useState(false)
  // Reading again would take back older pages, and move what somebody is choosing from.
  useEvery(LOOK_EVERY_MS, pages, !isSplitting && pages.pages.length === 1)
  return (
    <Card
      title="Timeline"
      actions={
        can('visitors:write') && (
          <button type="button" class="slim" aria-pressed={isSplitting} onClick={() => setIsSplitting(!isSplitting)}>
            {isSplitting ? 'Do not split' : 'Split'}
          </button>
        )
      }
    >
      {isSplitting && (
        <Split
          visitorId={visitorId}
          requestIds={[...chosen]}
          done={() => {
            setIsSplitting(false)
            clear()
            pages.reload()
            reload()
          }}
        />
      )}
      {!pages.isFirst && pages.rows.length === 0 && (
        <Empty title="No events">They are past their retention, or were split off.</Empty>
      )}
      <Problem error={pages.error} retry={pages.reload} />
      {timelineOf(pages.rows).map(({ day, visits }) => (
        <section key={day}>
          <h3>{day}</h3>
          <ol class="timeline">
            {visits.map(({ event, changes }) => (
              <li key={event.requestId}>
                <span class="row">
                  {isSplitting && (
                    <input
                      type="checkbox"
                      aria-label={`Split off ${event.requestId}`}
                      checked={chosen.has(event.requestId)}
                      onChange={() => toggle(event.requestId)}
                    />
                  )}
                  <MomentText at={event.timestamp} />
                  <VerdictChip of={event.verdict} />
                  <Id of={event.requestId} />
                  <span class="quiet small">
                    {event.device.platform} · {event.device.browser} · {event.ip.address}
                    {event.linkedId === null ? '' : ` · ${event.linkedId}`}
                  </span>
                </span>
                {changes.map((change) => (
                  <span key={change} class="change small row">
                    {change}
                  </span>
                ))}
              </li>
            ))}
          </ol>
        </section>
      ))}
      {pages.hasMore && (
        <button type="button" onClick={pages.more} disabled={pages.isLoading}>
          Load older
        </button>
      )}
    </Card>
  )
}
