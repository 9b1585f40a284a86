// Webhooks: who is told of what, and how that goes.

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { useChosen } from '../../lib/chosen.ts'
import { percent } from '../../lib/format.ts'
import { useAll } from '../../lib/load.ts'
import type { CreatedWebhook, ListedWebhook } from '../../lib/types.ts'
import { CopyCurl, Secret } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText, StatusChip } from '../../ui/words.tsx'
import { EVENT_TYPE_WORDS } from './types.ts'

export function Webhooks() {
  const loaded = useAll<ListedWebhook>('/v1/webhooks')
  const [isMaking, setIsMaking] = useState(false)
  return (
    <Page
      title="Webhooks"
      about="Your back end is told what happens, signed, and again until it has heard."
      actions={
        <>
          {can('webhooks:write') && (
            <button type="button" class="primary" onClick={() => setIsMaking(true)}>
              New webhook
            </button>
          )}
          <CopyCurl path="/v1/webhooks" />
        </>
      }
    >
      <Card title="All webhooks">
        <Shown of={loaded}>
          {({ data, total }) =>
            total === 0 ? (
              <Empty title="No webhook yet">
                Give an address of yours. On your own machine <code>fingerpost webhooks listen</code> forwards to it
                without one.
              </Empty>
            ) : (
              <Table label="Webhooks" head={['Address', 'Told of', 'Status', { number: 'Delivered' }, 'Last delivery']}>
                {data.map(({ id, url, events, status, successRate, lastDeliveryAt }) => (
                  <tr key={id}>
                    <th scope="row" class="wide">
                      <Link href={`/webhooks/${id}`}>{url}</Link>
                    </th>
                    <td class="wide">{events.join(', ')}</td>
                    <td>
                      <StatusChip of={status} />
                    </td>
                    <td class="number">{percent(successRate)}</td>
                    <td class="once">
                      <MomentText at={lastDeliveryAt} relative />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </Card>
      {isMaking && (
        <NewWebhook
          onClose={() => {
            setIsMaking(false)
            loaded.reload()
          }}
        />
      )}
    </Page>
  )
}

function NewWebhook({ onClose }: { readonly onClose: () => void }) {
  const [url, setUrl] = useState('')
  const { chosen, toggle } = useChosen(['verdict.block', 'verdict.challenge'])
  const [made, setMade] = useState<CreatedWebhook | null>(null)
  const act = useAct()
  const submit = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      const body = { url: url.trim(), events: [...chosen], enabled: true }
      setMade(await call<CreatedWebhook>('/v1/webhooks', { method: 'POST', body }))
    })
  }
  if (made !== null) {
    return (
      <Dialog title="The webhook is there" onClose={onClose}>
        <Secret name="The signing secret" value={made.signingSecret ?? made.secret ?? ''} />
        <p>Your receiver checks each delivery with it: the webhook’s page has code to copy and a box to try it.</p>
        <div class="row">
          <Link class="button primary" href={`/webhooks/${made.id}`}>
            Open the webhook
          </Link>
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form class="form" onSubmit={submit}>
        <TextField
          label="Address"
          value={url}
          onChange={setUrl}
          required
          maxLength={2_048}
          placeholder="https://shop.example/hooks/fingerpost"
          hint="https, on a public host."
        />
        <fieldset class="stack">
          <legend>Told when</legend>
          {EVENT_TYPE_WORDS.map(([type, words]) => (
            <CheckField key={type} label={words} hint={type} checked={chosen.has(type)} onChange={() => toggle(type)} />
          ))}
        </fieldset>
        <FormEnd act={act} action="Create" isReady={chosen.size > 0} onCancel={onClose} />
      </form>
    </Dialog>
  )
}
