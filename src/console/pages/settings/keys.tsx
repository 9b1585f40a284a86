// Keys of this environment: made, rotated, revoked; the text of one is shown once.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call, environment } from '../../lib/api.ts'
import { useAll } from '../../lib/load.ts'
import type { Key, NewKey } from '../../lib/types.ts'
import { CopyCurl, Secret } from '../../ui/copy.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { AreaField, SelectField, TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { Card } from '../../ui/page.tsx'
import { Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText } from '../../ui/words.tsx'

const KINDS = [
  ['public', 'public: in pages and apps'],
  ['secret', 'secret: on your servers only'],
] as const
type Kind = (typeof KINDS)[number][0]

export function Keys() {
  const loaded = useAll<Key>('/v1/keys')
  const [shown, setShown] = useState<NewKey | null>(null)
  const [asking, setAsking] = useState<{ readonly rotate: Kind } | { readonly revoke: Key } | null>(null)
  const made = (key: NewKey) => {
    setShown(key)
    loaded.reload()
  }
  return (
    <>
      {shown !== null && shown.key !== null && (
        <Secret name={`The ${shown.kind} key of ${shown.environment}`} value={shown.key} />
      )}
      <div class="columns">
        <Card title={`Keys of ${environment.value}`} actions={<CopyCurl path="/v1/keys" />}>
          <Shown of={loaded}>
            {({ data }) => (
              <Table label="Keys" head={['Key', 'Label', 'Kind', 'Origins', 'Created', 'Expires', '']}>
                {data.map((key) => (
                  <tr key={key.id}>
                    <th scope="row" class="once">
                      <code>
                        {key.prefix}…{key.last4}
                      </code>
                    </th>
                    <td class="wide">{key.label ?? <span class="quiet">none</span>}</td>
                    <td>{key.kind}</td>
                    <td class="wide">
                      {key.origins === null || key.origins.length === 0 ? (
                        <span class="quiet">any</span>
                      ) : (
                        key.origins.join(', ')
                      )}
                    </td>
                    <td class="once">
                      <MomentText at={key.createdAt} relative />
                    </td>
                    <td class="once">
                      {key.expiresAt === null ? <span class="quiet">never</span> : <MomentText at={key.expiresAt} />}
                    </td>
                    <td>
                      <button
                        type="button"
                        class="slim"
                        aria-label={`Revoke ${key.prefix}…${key.last4}`}
                        onClick={() => setAsking({ revoke: key })}
                      >
                        Revoke
                      </button>
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </Shown>
        </Card>
        <div class="stack">
          <NewKeyForm made={made} />
          <Card title="Rotate">
            <p>A new key takes the place of all keys of its kind in {environment.value}. They stop at once.</p>
            <div class="row">
              {KINDS.map(([kind]) => (
                <button key={kind} type="button" onClick={() => setAsking({ rotate: kind })}>
                  Rotate {kind} keys
                </button>
              ))}
            </div>
          </Card>
        </div>
      </div>
      {asking !== null && 'rotate' in asking && (
        <Confirm
          title={`Rotate the ${asking.rotate} keys of ${environment.value}`}
          action="Rotate"
          typed={environment.value}
          onClose={() => setAsking(null)}
          onConfirm={async () =>
            made(await call<NewKey>('/v1/keys/rotate', { method: 'POST', body: { kind: asking.rotate } }))
          }
        >
          <p>
            All {asking.rotate} keys of {environment.value} stop now. Whoever uses one gets 401 until it has the new
            one.
          </p>
        </Confirm>
      )}
      {asking !== null && 'revoke' in asking && (
        <Confirm
          title="Revoke the key"
          action="Revoke"
          onClose={() => setAsking(null)}
          onConfirm={async () => {
            await call(`/v1/keys/${asking.revoke.id}`, { method: 'DELETE' })
            loaded.reload()
          }}
        >
          <p>
            <code>
              {asking.revoke.prefix}…{asking.revoke.last4}
            </code>{' '}
            stops now. Whoever uses it gets 401.
          </p>
        </Confirm>
      )}
    </>
  )
}

function NewKeyForm({ made }: { readonly made: (key: NewKey) => void }) {
  const [kind, setKind] = useState<Kind>('public')
  const [label, setLabel] = useState('')
  const [origins, setOrigins] = useState('')
  const act = useAct()
  const submit = (event: Event) => {
    event.preventDefault()
    const named = origins.split(/\s+/).filter((one) => one !== '')
    const body = {
      kind,
      ...(label.trim() === '' ? {} : { label: label.trim() }),
      ...(kind === 'public' && named.length > 0 ? { origins: named } : {}),
    }
    void act.run(async () => {
      made(await call<NewKey>('/v1/keys', { method: 'POST', body }))
      setLabel('')
    })
  }
  return (
    <Card title="New key">
      <form class="form" onSubmit={submit}>
        <SelectField label="Kind" value={kind} onChange={setKind} options={KINDS} />
        <TextField label="Label" value={label} onChange={setLabel} maxLength={100} />
        {kind === 'public' && (
          <AreaField
            label="Origins that may use it"
            rows={2}
            value={origins}
            onChange={setOrigins}
            hint="One a line, such as https://shop.example; empty: any."
          />
        )}
        <FormEnd act={act} action="Create" />
      </form>
    </Card>
  )
}
