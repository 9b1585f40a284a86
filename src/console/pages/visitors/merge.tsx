// Another visitor is the same device: it ends, and this one goes on.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call } from '../../lib/api.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'

export function Merge({ into, done }: { readonly into: string; readonly done: () => void }) {
  const [isOpen, setIsOpen] = useState(false)
  const [other, setOther] = useState('')
  const act = useAct()
  const submit = async (event: Event) => {
    event.preventDefault()
    const isDone = await act.run(
      () => call(`/v1/visitors/${into}/merge`, { method: 'POST', body: { visitorId: other.trim() } }),
      'The visitors are one.',
    )
    if (!isDone) return
    setIsOpen(false)
    setOther('')
    done()
  }
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        Merge
      </button>
      {isOpen && (
        <Dialog title="Merge another visitor into this one" onClose={() => setIsOpen(false)}>
          <form class="form" onSubmit={submit}>
            <p>The other visitor ends: reads of it lead here, and its places on lists move. Splitting takes it back.</p>
            <TextField
              label="Id of the other visitor"
              value={other}
              onChange={setOther}
              required
              pattern="\s*pv_[0-9A-Za-z]{20}\s*"
              placeholder="pv_…"
            />
            <FormEnd act={act} action="Merge" onCancel={() => setIsOpen(false)} />
          </form>
        </Dialog>
      )}
    </>
  )
}
