// One webhook: its deliveries, a test, how to verify, and what can be changed.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { percent } from '../../lib/format.ts'
import type { PageProps } from '../../lib/later.tsx'
import { useEvery, useLoad } from '../../lib/load.ts'
import { usePlace } from '../../lib/place.ts'
import type { RotatedSecret, Webhook } from '../../lib/types.ts'
import { CopyCurl, Secret } from '../../ui/copy.tsx'
import { DeleteButton } from '../../ui/delete-button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Card, Page, Tabs } from '../../ui/page.tsx'
import { Problem, Shown } from '../../ui/state.tsx'
import { FactList, MomentText, StatusChip } from '../../ui/words.tsx'
import { DeliveryLog } from './delivery-log.tsx'
import { TestDelivery } from './test-delivery.tsx'
import { VerifyBox } from './verify-box.tsx'

const TABS = [
  ['deliveries', 'Deliveries'],
  ['test', 'Test'],
  ['verify', 'Verify'],
  ['settings', 'Settings'],
] as const
const LOOK_EVERY_MS = 10_000
const REASONS: Readonly<Record<string, string>> = {
  failing_24h:
    'It failed for 24 hours without one success, so it was switched off. Mend the receiver, then switch it on.',
  secret_lost: 'Its secret cannot be opened any more. Rotate it, give the receiver the new one, then switch it on.',
}

export function WebhookPage({ id }: PageProps) {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`
  const loaded = useLoad<Webhook>(path)
  const [asked, ask] = usePlace()
  useEvery(LOOK_EVERY_MS, loaded)
  const tab = TABS.find(([one]) => one === asked.tab)?.[0] ?? 'deliveries'
  return (
    <Page title={loaded.data?.url ?? 'Webhook'} about={<code>{id}</code>} actions={<CopyCurl path={path} />}>
      <Shown of={loaded}>
        {(webhook) => (
          <>
            <section class="card">
              <FactList
                of={[
                  ['Status', <StatusChip key="s" of={webhook.status} />],
                  ['Told of', webhook.events.join(', ')],
                  ['Delivered, 7 days', percent(webhook.successRate)],
                  ['Last delivery', <MomentText key="l" at={webhook.lastDeliveryAt} relative />],
                  [
                    'Failing since',
                    webhook.failingSince === null ? 'it is not' : <MomentText key="f" at={webhook.failingSince} />,
                  ],
                ]}
              />
              {webhook.disabledReason !== null && (
                <p class="hint">{REASONS[webhook.disabledReason] ?? webhook.disabledReason}</p>
              )}
            </section>
            <Tabs
              label="About the webhook"
              chosen={tab}
              choose={(next) => ask({ tab: next === 'deliveries' ? '' : next })}
              tabs={TABS}
            />
            {tab === 'deliveries' && <DeliveryLog webhookId={webhook.id} opened={asked.delivery ?? null} />}
            {tab === 'test' && <TestDelivery webhook={webhook} />}
            {tab === 'verify' && <VerifyBox />}
            {tab === 'settings' && <Settings webhook={webhook} reload={loaded.reload} />}
          </>
        )}
      </Shown>
    </Page>
  )
}

const GRACES = [
  ['0', 'ends at once'],
  ['3600', 'goes on for an hour'],
  ['86400', 'goes on for a day'],
  ['604800', 'goes on for a week'],
] as const

function Settings({ webhook, reload }: { readonly webhook: Webhook; readonly reload: () => void }) {
  const [url, setUrl] = useState(webhook.url)
  const [grace, setGrace] = useState<(typeof GRACES)[number][0]>('86400')
  const [rotated, setRotated] = useState<RotatedSecret | null>(null)
  const act = useAct()
  const path = `/v1/webhooks/${webhook.id}`
  const isActive = webhook.status === 'active'
  const change = (body: unknown, done: string) =>
    act.run(async () => {
      await call(path, { method: 'PUT', body })
      reload()
    }, done)
  const rotate = () =>
    act.run(async () => {
      const body = { gracePeriodSeconds: Number(grace) }
      setRotated(await call<RotatedSecret>(`${path}/rotate-secret`, { method: 'POST', body }))
    })
  if (!can('webhooks:write')) return <p class="quiet">Your role reads webhooks; changing them takes an editor.</p>
  return (
    <div class="columns">
      <Card title="Address">
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault()
            void change({ url: url.trim() }, 'The address is changed.')
          }}
        >
          <TextField label="Address" value={url} onChange={setUrl} required maxLength={2_048} />
          <div class="row">
            <button type="submit" disabled={act.isBusy || url.trim() === webhook.url}>
              Save
            </button>
            <button
              type="button"
              disabled={act.isBusy}
              onClick={() =>
                void change({ status: isActive ? 'paused' : 'active' }, isActive ? 'Paused.' : 'Switched on.')
              }
            >
              {isActive ? 'Pause' : 'Switch on'}
            </button>
          </div>
        </form>
        <Problem error={act.error} />
        <DeleteButton title="Delete the webhook" path={path} to="/webhooks">
          <p>Deliveries that wait are cancelled at once.</p>
        </DeleteButton>
      </Card>
      <Card title="Signing secret">
        <p>
          A new secret takes over at once. The old one signs beside it for as long as you say, so that no delivery is
          refused meanwhile.
        </p>
        {webhook.secretGraceEndsAt !== null && (
          <p class="hint">
            The secret before the last rotation signs until <MomentText at={webhook.secretGraceEndsAt} />.
          </p>
        )}
        <div class="row end">
          <SelectField label="The old one" value={grace} onChange={setGrace} options={GRACES} />
          <button type="button" disabled={act.isBusy} onClick={() => void rotate()}>
            Rotate
          </button>
        </div>
        {rotated !== null && <Secret name="The new secret" value={rotated.signingSecret ?? rotated.secret ?? ''} />}
      </Card>
    </div>
  )
}
