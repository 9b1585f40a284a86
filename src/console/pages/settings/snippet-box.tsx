// The snippet with a public key in it: the text of a key is shown once, so a key of its own can be made for it here.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call, can, environment, session } from '../../lib/api.ts'
import type { NewKey } from '../../lib/types.ts'
import { Code } from '../../ui/copy.tsx'
import { Problem } from '../../ui/state.tsx'
import { snippetOf } from './snippet.ts'

export function SnippetBox() {
  const [key, setKey] = useState<string | null>(null)
  const act = useAct()
  const make = () =>
    act.run(async () => {
      const body = { kind: 'public', label: 'Snippet' }
      setKey((await call<NewKey>('/v1/keys', { method: 'POST', body })).key)
    })
  return (
    <>
      <Code
        label="Put this into a page"
        text={snippetOf(session.value?.serviceUrl ?? '', key ?? `pk_${environment.value}_…`)}
      />
      <Problem error={act.error} />
      {key === null && can('keys:write') && (
        <p class="row">
          <button type="button" disabled={act.isBusy} onClick={() => void make()}>
            Put a new public key in
          </button>
          <span class="quiet small">Or take one that you have.</span>
        </p>
      )}
    </>
  )
}
