// Puts a value that a page shows on a list that takes it.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call } from '../../lib/api.ts'
import { useAll } from '../../lib/load.ts'
import type { ListedList } from '../../lib/types.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { Empty, Shown } from '../../ui/state.tsx'

type Values = Readonly<Partial<Record<ListedList['type'], string>>>

export function AddToList({ values, done }: { readonly values: Values; readonly done?: () => void }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        Add to a list
      </button>
      {isOpen && <Choose values={values} onClose={() => setIsOpen(false)} {...(done === undefined ? {} : { done })} />}
    </>
  )
}

function Choose({
  values,
  onClose,
  done,
}: {
  readonly values: Values
  readonly onClose: () => void
  readonly done?: () => void
}) {
  const lists = useAll<ListedList>('/v1/lists')
  return (
    <Dialog title="Add to a list" onClose={onClose}>
      <Shown of={lists}>
        {({ data }) => {
          const fitting = data.filter(({ type }) => values[type] !== undefined)
          if (fitting.length === 0) {
            return (
              <Empty title="No list takes this">
                Make one of type {Object.keys(values).join(' or ')} under Lists first.
              </Empty>
            )
          }
          return <Form lists={fitting} values={values} onClose={onClose} {...(done === undefined ? {} : { done })} />
        }}
      </Shown>
    </Dialog>
  )
}

function Form({
  lists,
  values,
  onClose,
  done,
}: {
  readonly lists: readonly ListedList[]
  readonly values: Values
  readonly onClose: () => void
  readonly done?: () => void
}) {
  const [listId, setListId] = useState(lists[0]?.id ?? '')
  const [reason, setReason] = useState('')
  const act = useAct()
  const list = lists.find(({ id }) => id === listId)
  const value = list === undefined ? '' : (values[list.type] ?? '')
  const submit = async (event: Event) => {
    event.preventDefault()
    const add = [{ value, ...(reason.trim() === '' ? {} : { reason: reason.trim() }) }]
    const path = `/v1/lists/${listId}/entries`
    if (!(await act.run(() => call(path, { method: 'PATCH', body: { add } }), `It is on ${list?.name}.`))) return
    onClose()
    done?.()
  }
  return (
    <form class="form" onSubmit={submit}>
      <SelectField
        label="List"
        value={listId}
        onChange={setListId}
        options={lists.map(({ id, name }) => [id, name] as const)}
      />
      <p>
        <code>{value}</code>
      </p>
      <TextField label="Reason" value={reason} onChange={setReason} maxLength={200} />
      <FormEnd act={act} action="Add" onCancel={onClose} />
    </form>
  )
}
