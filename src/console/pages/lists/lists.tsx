// Lists: what rules and people remember of visitors, addresses and e-mails.

import { useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { wholeText } from '../../lib/format.ts'
import { useAll } from '../../lib/load.ts'
import type { ListedList } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText } from '../../ui/words.tsx'

export const TYPES = [
  ['visitor', 'Visitors'],
  ['ip', 'Addresses and ranges'],
  ['email', 'E-mails'],
] as const

export function Lists() {
  const lists = useAll<ListedList>('/v1/lists')
  const [isMaking, setIsMaking] = useState(false)
  return (
    <Page
      title="Lists"
      about="Rules ask whether a value is on one, and may add to them."
      actions={
        <>
          {can('lists:write') && (
            <button type="button" class="primary" onClick={() => setIsMaking(true)}>
              New list
            </button>
          )}
          <CopyCurl path="/v1/lists" />
        </>
      }
    >
      <Card title="All lists">
        <Shown of={lists}>
          {({ data, total }) =>
            total === 0 ? (
              <Empty title="No list yet">
                Make one for devices you trust, or for those you never want to see again.
              </Empty>
            ) : (
              <Table label="Lists" head={['Name', 'Holds', { number: 'Entries' }, 'Changed']}>
                {data.map(({ id, name, type, entryCount, updatedAt }) => (
                  <tr key={id}>
                    <th scope="row" class="wide">
                      <Link href={`/lists/${id}`}>{name}</Link>
                    </th>
                    <td>{TYPES.find(([one]) => one === type)?.[1]}</td>
                    <td class="number">{wholeText(entryCount)}</td>
                    <td class="once">
                      <MomentText at={updatedAt} relative />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </Card>
      {isMaking && <NewList onClose={() => setIsMaking(false)} />}
    </Page>
  )
}

function NewList({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('')
  const [type, setType] = useState<ListedList['type']>('visitor')
  const [description, setDescription] = useState('')
  const [days, setDays] = useState('')
  const act = useAct()
  const [, go] = useLocation()
  const submit = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      const body = {
        name: name.trim(),
        type,
        ...(description === '' ? {} : { description }),
        ...(days === '' ? {} : { ttl: Math.round(Number(days) * 86_400) }),
      }
      const made = await call<{ id: string }>('/v1/lists', { method: 'POST', body })
      go(`/lists/${made.id}`)
    })
  }
  return (
    <Dialog title="New list" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          required
          maxLength={64}
          hint="Letters, digits, _ . and -; rules name the list by it."
        />
        <SelectField label="Holds" value={type} onChange={setType} options={TYPES} />
        <TextField label="Description" value={description} onChange={setDescription} maxLength={500} />
        <TextField
          label="Entries live for (days)"
          type="number"
          value={days}
          onChange={setDays}
          min={0}
          hint="Empty: for ever."
        />
        <FormEnd act={act} action="Create" onCancel={onClose} />
      </form>
    </Dialog>
  )
}
