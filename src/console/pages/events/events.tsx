// Events: searched, watched as they happen, labelled many at a time, taken along as a file.

import { useAct } from '../../lib/act.ts'
import { call, can, request } from '../../lib/api.ts'
import { useChosen } from '../../lib/chosen.ts'
import { wholeText } from '../../lib/format.ts'
import { usePages } from '../../lib/load.ts'
import { usePlace } from '../../lib/place.ts'
import { saveFile } from '../../lib/save-file.ts'
import type { Event } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Problem } from '../../ui/state.tsx'
import { PagedTable } from '../../ui/table.tsx'
import { Filters, searchOf } from './filters.tsx'
import { LiveTail } from './live-tail.tsx'
import { EVENT_HEAD, EventCells } from './rows.tsx'
import { Views } from './views.tsx'

const PAGE_ROWS = 50

export function Events() {
  const [asked, ask] = usePlace()
  const search = searchOf(asked)
  const isLive = asked.live === '1'
  const csv = useAct()
  const save = () =>
    csv.run(async () => {
      const answer = await request('/v1/events', { query: search }, { Accept: 'text/csv' })
      saveFile('events.csv', await answer.text(), 'text/csv')
    })
  return (
    <Page
      title="Events"
      about="Every identification with what was decided and why."
      actions={
        <>
          <button
            type="button"
            aria-pressed={isLive}
            class={isLive ? 'primary' : ''}
            onClick={() => ask({ live: isLive ? '' : '1' })}
          >
            Live tail
          </button>
          <button type="button" disabled={csv.isBusy} onClick={() => void save()}>
            CSV
          </button>
          <CopyCurl path="/v1/events" ask={{ query: { ...search, fields: 'full' } }} />
        </>
      }
    >
      <Card title="Search">
        <Filters search={search} ask={ask} />
        <Views search={search} ask={ask} />
        <Problem error={csv.error} />
      </Card>
      {isLive ? (
        <LiveTail search={search} />
      ) : (
        <Found
          key={JSON.stringify(search)}
          search={search}
          clear={() => ask(Object.fromEntries(Object.keys(search).map((name) => [name, ''])))}
        />
      )}
    </Page>
  )
}

function Found({ search, clear }: { readonly search: Readonly<Record<string, string>>; readonly clear: () => void }) {
  const pages = usePages<Event>('/v1/events', { query: { ...search, fields: 'full', limit: PAGE_ROWS } })
  const { chosen, toggle, clear: unchoose } = useChosen()
  const mayLabel = can('events:write')
  const isFiltered = Object.keys(search).length > 0
  return (
    <Card
      title="Found"
      actions={
        <button type="button" class="slim" onClick={pages.reload} disabled={pages.isLoading}>
          Read again
        </button>
      }
    >
      {mayLabel && chosen.size > 0 && (
        <BulkLabel
          ids={[...chosen]}
          done={() => {
            unchoose()
            pages.reload()
          }}
        />
      )}
      <PagedTable
        label="Events"
        head={mayLabel ? ['', ...EVENT_HEAD] : EVENT_HEAD}
        of={pages}
        dependsOn={chosen}
        row={(event) => (
          <tr key={event.requestId} aria-selected={chosen.has(event.requestId)}>
            {mayLabel && (
              <td>
                <input
                  type="checkbox"
                  aria-label={`Choose ${event.requestId}`}
                  checked={chosen.has(event.requestId)}
                  onChange={() => toggle(event.requestId)}
                />
              </td>
            )}
            <EventCells of={event} />
          </tr>
        )}
        empty={
          isFiltered ? (
            <Empty title="No event matches">
              <button type="button" onClick={clear}>
                Clear the filters
              </button>
            </Empty>
          ) : (
            <Empty title="No event yet">Send a first one: the Overview has what to put into a page.</Empty>
          )
        }
      />
    </Card>
  )
}

interface Labelled {
  readonly labelled: number
  readonly notFound: number
}

function BulkLabel({ ids, done }: { readonly ids: readonly string[]; readonly done: () => void }) {
  const act = useAct()
  const label = (value: 'fraud' | 'legitimate' | null) =>
    act.run(
      async () => {
        await call<Labelled>('/v1/events/labels', { method: 'POST', body: { label: value, requestIds: ids } })
        done()
      },
      `Labelled: ${wholeText(ids.length)}.`,
    )
  return (
    <div class="row">
      <span>{wholeText(ids.length)} chosen:</span>
      <button type="button" class="slim" disabled={act.isBusy} onClick={() => void label('fraud')}>
        Fraud
      </button>
      <button type="button" class="slim" disabled={act.isBusy} onClick={() => void label('legitimate')}>
        Legitimate
      </button>
      <button type="button" class="slim" disabled={act.isBusy} onClick={() => void label(null)}>
        No label
      </button>
      <Problem error={act.error} />
    </div>
  )
}
