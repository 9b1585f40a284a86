// Visitors, found by account, e-mail, address, list or the beginning of any of them.

import { useState } from 'preact/hooks'
import { usePages } from '../../lib/load.ts'
import { usePlace } from '../../lib/place.ts'
import type { FoundVisitor } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { PagedTable } from '../../ui/table.tsx'
import { Id, MomentText } from '../../ui/words.tsx'

const NAMES = [
  ['q', 'Begins with (id, account, e-mail)'],
  ['linkedId', 'Account'],
  ['email', 'E-mail, whole'],
  ['ip', 'Address or range'],
  ['list', 'On the list'],
] as const

export function Visitors() {
  const [asked, ask] = usePlace()
  const query = Object.fromEntries(NAMES.map(([name]) => [name, asked[name] ?? '']).filter(([, value]) => value !== ''))
  const isAsked = Object.keys(query).length > 0
  return (
    <Page
      title="Visitors"
      about="Devices, each with everything it was seen with."
      actions={isAsked && <CopyCurl path="/v1/visitors" ask={{ query }} />}
    >
      <Card title="Find">
        <Search key={JSON.stringify(query)} query={query} ask={ask} />
      </Card>
      {isAsked ? (
        <Found query={query} />
      ) : (
        <section class="card">
          <Empty title="Ask for somebody">
            An account of yours, an e-mail, an address, or the name of a list. Every event leads to its visitor, too.
          </Empty>
        </section>
      )}
    </Page>
  )
}

function Search({
  query,
  ask,
}: {
  readonly query: Readonly<Record<string, string>>
  readonly ask: (changes: Readonly<Record<string, string>>) => void
}) {
  const [texts, setTexts] = useState(query)
  const submit = (event: Event) => {
    event.preventDefault()
    ask(Object.fromEntries(NAMES.map(([name]) => [name, (texts[name] ?? '').trim()])))
  }
  return (
    <form class="row end" onSubmit={submit}>
      {NAMES.map(([name, label]) => (
        <TextField
          key={name}
          label={label}
          value={texts[name] ?? ''}
          maxLength={320}
          onChange={(value) => setTexts({ ...texts, [name]: value })}
        />
      ))}
      <button type="submit" class="primary">
        Find
      </button>
    </form>
  )
}

function Found({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const pages = usePages<FoundVisitor>('/v1/visitors', { query })
  return (
    <Card title="Found">
      <PagedTable
        label="Visitors"
        head={['Visitor', 'Last seen', 'First seen', { number: 'Visits' }, 'Account']}
        of={pages}
        row={(visitor) => (
          <tr key={visitor.visitorId}>
            <td>
              <Id of={visitor.visitorId} whole />
            </td>
            <td class="once">
              <MomentText at={visitor.lastSeenAt} relative />
            </td>
            <td class="once">
              <MomentText at={visitor.firstSeenAt} />
            </td>
            <td class="number">{visitor.totalVisits}</td>
            <td class="wide">{visitor.linkedId ?? <span class="quiet">none</span>}</td>
          </tr>
        )}
        empty={<Empty title="Nobody fits">What is looked for must fit as a whole, but for “begins with”.</Empty>}
      />
    </Card>
  )
}
