// The deliveries of a webhook: what was sent, what came back, and sending it again.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { wholeText } from '../../lib/format.ts'
import { useEvery, useLoad, usePages } from '../../lib/load.ts'
import type { Delivery, DeliveryInFull } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { PagedTable, Table } from '../../ui/table.tsx'
import { MomentText, StatusChip } from '../../ui/words.tsx'
import { Raw } from '../events/raw.tsx'

const STATUSES = [
  ['', 'any'],
  ['delivered', 'delivered'],
  ['pending', 'pending'],
  ['failed', 'failed'],
] as const
const HOURS_BACK_MS = 24 * 3_600_000
const LOOK_EVERY_MS = 2_000

export function DeliveryLog({ webhookId, opened }: { readonly webhookId: string; readonly opened: string | null }) {
  const [status, setStatus] = useState<(typeof STATUSES)[number][0]>('')
  const [chosen, setChosen] = useState(opened)
  const path = `/v1/webhooks/${webhookId}/deliveries`
  const pages = usePages<Delivery>(path, { query: { status, limit: 50 } })
  const again = useAct()
  const redeliverFailed = () =>
    again.run(async () => {
      const body = { since: new Date(Date.now() - HOURS_BACK_MS).toISOString() }
      const { queued } = await call<{ queued: number }>(`/v1/webhooks/${webhookId}/redeliver`, { method: 'POST', body })
      pages.reload()
      if (queued === 0) throw new Error('No delivery failed in the last 24 hours.')
    }, 'What failed in the last 24 hours is sent again.')
  return (
    <Card
      title="Deliveries"
      actions={
        <span class="row">
          <button type="button" class="slim" onClick={pages.reload} disabled={pages.isLoading}>
            Read again
          </button>
          {can('webhooks:write') && (
            <button type="button" class="slim" disabled={again.isBusy} onClick={() => void redeliverFailed()}>
              Send again what failed since yesterday
            </button>
          )}
          <CopyCurl path={path} ask={{ query: { status } }} />
        </span>
      }
    >
      <SelectField label="Status" value={status} onChange={setStatus} options={STATUSES} />
      <Problem error={again.error} />
      {chosen !== null && (
        <OneDelivery key={chosen} path={`${path}/${chosen}`} changed={pages.reload} close={() => setChosen(null)} />
      )}
      <PagedTable
        label="Deliveries"
        head={['Time', 'Type', 'Status', 'Answer', { number: 'Attempts' }, 'Next', '']}
        of={pages}
        dependsOn={chosen}
        row={(delivery) => (
          <tr key={delivery.deliveryId} aria-selected={delivery.deliveryId === chosen}>
            <td class="once">
              <MomentText at={delivery.createdAt} />
            </td>
            <td>{delivery.eventType}</td>
            <td>
              <StatusChip of={delivery.status} />
            </td>
            <td>{delivery.lastStatusCode ?? delivery.lastError ?? <span class="quiet">none yet</span>}</td>
            <td class="number">{wholeText(delivery.attempts)}</td>
            <td class="once">
              {delivery.nextAttemptAt === null ? (
                <span class="quiet">–</span>
              ) : (
                <MomentText at={delivery.nextAttemptAt} relative />
              )}
            </td>
            <td>
              <button
                type="button"
                class="slim"
                aria-label={`Open ${delivery.deliveryId}`}
                onClick={() => setChosen(delivery.deliveryId)}
              >
                Open
              </button>
            </td>
          </tr>
        )}
        empty={
          <Empty title="No delivery">
            {status === '' ? 'Send a test, or wait for what it is told of.' : 'None has this status.'}
          </Empty>
        }
      />
    </Card>
  )
}

function OneDelivery({
  path,
  changed,
  close,
}: {
  readonly path: string
  readonly changed: () => void
  readonly close: () => void
}) {
  const loaded = useLoad<DeliveryInFull>(path)
  const act = useAct()
  const [isWaiting, setIsWaiting] = useState(false)
  useEvery(LOOK_EVERY_MS, loaded, isWaiting)
  const redeliver = () =>
    act.run(async () => {
      await call(`${path}/redeliver`, { method: 'POST' })
      setIsWaiting(true)
      loaded.reload()
      changed()
    }, 'It is sent again.')
  return (
    <section class="group" aria-label="One delivery">
      <Shown of={loaded}>
        {(delivery) => (
          <>
            <div class="row spread">
              <code>{delivery.deliveryId}</code>
              <span class="row">
                {can('webhooks:write') && (
                  <button type="button" class="slim" disabled={act.isBusy} onClick={() => void redeliver()}>
                    Send again
                  </button>
                )}
                <button type="button" class="slim" onClick={close}>
                  Close
                </button>
              </span>
            </div>
            <Problem error={act.error} />
            <Table label="Attempts" head={['Attempt', 'Why', 'When', 'Answer', { number: 'Took' }]}>
              {delivery.attempts.map(({ n, trigger, startedAt, statusCode, error, durationMs }) => (
                <tr key={`${n} ${startedAt}`}>
                  <td>{n}</td>
                  <td>{trigger}</td>
                  <td class="once">
                    <MomentText at={startedAt} />
                  </td>
                  <td>{statusCode ?? error}</td>
                  <td class="number">{Math.round(durationMs)} ms</td>
                </tr>
              ))}
            </Table>
            <Raw of={delivery.payload ?? 'The body is no longer kept.'} />
          </>
        )}
      </Shown>
    </section>
  )
}
