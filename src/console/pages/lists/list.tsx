// One list: its entries, adding to it by hand or from a file, and which rules ask it.

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { span, wholeText } from '../../lib/format.ts'
import type { PageProps } from '../../lib/later.tsx'
import { type Loaded, useLoad, usePages, useSettled } from '../../lib/load.ts'
import type { ListEntry, ListedRule, ListWithUse, OffsetPage } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { DeleteButton } from '../../ui/delete-button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { PagedTable } from '../../ui/table.tsx'
import { FactList, Id, MomentText } from '../../ui/words.tsx'
import { BulkAdd } from './bulk-add.tsx'

const SETTLE_MS = 250

export function ListPage({ id }: PageProps) {
  const path = `/v1/lists/${encodeURIComponent(id)}`
  const loaded = useLoad<ListWithUse>(path)
  return (
    <Page title={loaded.data?.name ?? 'List'} about={<code>{id}</code>} actions={<CopyCurl path={path} />}>
      <Shown of={loaded}>{(list) => <Whole list={list} loaded={loaded} />}</Shown>
    </Page>
  )
}

function Whole({ list, loaded }: { readonly list: ListWithUse; readonly loaded: Loaded<ListWithUse> }) {
  const [q, setQ] = useState('')
  const settled = useSettled(q, SETTLE_MS)
  const entries = usePages<ListEntry>(`/v1/lists/${list.id}/entries`, { query: { q: settled, limit: 100 } })
  const reload = () => {
    loaded.reload()
    entries.reload()
  }
  return (
    <>
      <section class="card">
        <FactList
          of={[
            ['Holds', list.type],
            ['Entries', wholeText(list.entryCount)],
            ['New entries live', list.ttl === null ? 'for ever' : span(list.ttl)],
            ['Description', list.description ?? 'none'],
            ['Changed', <MomentText key="c" at={list.updatedAt} />],
          ]}
        />
        <UsedBy ruleIds={list.usedByRules} />
        {can('lists:write') && (
          <DeleteButton
            label="Delete the list"
            title="Delete the list"
            path={`/v1/lists/${list.id}`}
            to="/lists"
            typed={list.name}
          >
            <p>
              {wholeText(list.entryCount)} entries go with it.
              {list.usedByRules.length > 0 &&
                ` ${list.usedByRules.length} rules ask it; their conditions on it are false from then on.`}
            </p>
          </DeleteButton>
        )}
      </section>
      <div class="columns">
        <Card title="Entries">
          <TextField label="Begins with" type="search" value={q} onChange={setQ} maxLength={320} />
          <PagedTable
            label="Entries"
            head={['Value', 'Added', 'Expires', 'By', 'Reason', '']}
            of={entries}
            row={(entry) => <Row key={entry.value} list={list} entry={entry} done={reload} />}
            empty={<Empty title={settled === '' ? 'The list is empty' : 'No entry begins so'} />}
          />
        </Card>
        {can('lists:write') && <BulkAdd list={list} done={reload} />}
      </div>
    </>
  )
}

function UsedBy({ ruleIds }: { readonly ruleIds: readonly string[] }) {
  const rules = useLoad<OffsetPage<ListedRule>>(ruleIds.length === 0 ? null : '/v1/rules', { query: { limit: 100 } })
  if (ruleIds.length === 0) return <p class="quiet">No rule asks this list.</p>
  return (
    <p>
      Asked by{' '}
      {ruleIds.map((id, i) => (
        <span key={id}>
          {i > 0 && ', '}
          <Link href={`/rules/${id}`}>{rules.data?.data.find((rule) => rule.id === id)?.name ?? id}</Link>
        </span>
      ))}
      .
    </p>
  )
}

function Row({
  list,
  entry,
  done,
}: {
  readonly list: ListWithUse
  readonly entry: ListEntry
  readonly done: () => void
}) {
  const act = useAct()
  const remove = () =>
    act.run(async () => {
      await call(`/v1/lists/${list.id}/entries`, { method: 'PATCH', body: { remove: [entry.value] } })
      done()
    }, 'The entry is off the list.')
  return (
    <tr>
      <th scope="row" class="wide">
        {list.type === 'visitor' ? <Id of={entry.value} whole /> : <code>{entry.value}</code>}
        <Problem error={act.error} />
      </th>
      <td class="once">
        <MomentText at={entry.addedAt} relative />
      </td>
      <td class="once">
        {entry.expiresAt === null ? <span class="quiet">never</span> : <MomentText at={entry.expiresAt} />}
      </td>
      <td>{entry.ruleId === null ? entry.source : <Link href={`/rules/${entry.ruleId}`}>rule</Link>}</td>
      <td class="wide">{entry.reason ?? <span class="quiet">none</span>}</td>
      <td>
        {can('lists:write') && (
          <button
            type="button"
            class="slim"
            aria-label={`Remove ${entry.value}`}
            disabled={act.isBusy}
            onClick={() => void remove()}
          >
            Remove
          </button>
        )}
      </td>
    </tr>
  )
}
