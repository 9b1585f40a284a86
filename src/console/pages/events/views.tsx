// The searches that were given a name.

import { useState } from 'preact/hooks'
import { TextField } from '../../ui/field.tsx'
import { FILTERS, type Search } from './filters.tsx'
import { dropView, keepView, readViews } from './saved-views.ts'

export function Views({ search, ask }: { readonly search: Search; readonly ask: (changes: Search) => void }) {
  const [views, setViews] = useState(readViews)
  const [name, setName] = useState('')
  const nothing = Object.fromEntries([...FILTERS, ...Object.keys(search)].map((one) => [one, '']))
  const save = (event: Event) => {
    event.preventDefault()
    if (name.trim() === '') return
    setViews(keepView(name, search))
    setName('')
  }
  return (
    <details>
      <summary>Saved views ({views.length})</summary>
      <ul class="plain-list">
        {views.map((view) => (
          <li key={view.name} class="row">
            <button type="button" class="plain" onClick={() => ask({ ...nothing, ...view.search })}>
              {view.name}
            </button>
            <button
              type="button"
              class="slim"
              aria-label={`Forget ${view.name}`}
              onClick={() => setViews(dropView(view.name))}
            >
              Forget
            </button>
          </li>
        ))}
      </ul>
      <form class="row end" onSubmit={save}>
        <TextField label="Name of this search" value={name} onChange={setName} maxLength={60} />
        <button type="submit">Save</button>
      </form>
    </details>
  )
}
