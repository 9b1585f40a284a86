// The deliveries that an event caused.

import { Link } from 'wouter-preact'
import { call, environment } from '../../lib/api.ts'
import { useLoadBy } from '../../lib/load.ts'
import type { CursorPage, Delivery, DeliveryInFull, Event, ListedWebhook, OffsetPage } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { StatusChip } from '../../ui/words.tsx'

const WEBHOOKS_MAX = 20
const DELIVERIES_MAX = 20
/** A delivery is made when its event is decided, give or take what the dispatcher is behind. */
const AROUND_MS = 60_000

export function Deliveries({ event }: { readonly event: Event }) {
  const loaded = useLoadBy(`${environment.value} deliveries ${event.requestId}`, (signal) =>
    readDeliveries(event, signal),
  )
  return (
    <Card title="Deliveries">
      <Shown of={loaded}>
        {(found) =>
          found.length === 0 ? (
            <Empty title="No delivery">No webhook was told of this event, or what it was told is no longer kept.</Empty>
          ) : (
            <Table label="Deliveries of this event" head={['Type', 'Status', 'Webhook', { number: 'Attempts' }]}>
              {found.map(({ deliveryId, webhookId, eventType, status, attempts }) => (
                <tr key={deliveryId}>
                  <td>{eventType}</td>
                  <td>
                    <StatusChip of={status} />
                  </td>
                  <td>
                    <Link href={`/webhooks/${webhookId}?delivery=${deliveryId}`}>{webhookId}</Link>
                  </td>
                  <td class="number">{attempts.length}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </Shown>
    </Card>
  )
}

async function readDeliveries(event: Event, signal: AbortSignal): Promise<readonly DeliveryInFull[]> {
  const at = new Date(event.timestamp).getTime()
  const query = {
    after: new Date(at - 1).toISOString(),
    before: new Date(at + AROUND_MS).toISOString(),
    limit: DELIVERIES_MAX,
  }
  const webhooks = await call<OffsetPage<ListedWebhook>>('/v1/webhooks', { query: { limit: WEBHOOKS_MAX }, signal })
  const found = await Promise.all(
    webhooks.data.map(async ({ id }) => {
      const { data } = await call<CursorPage<Delivery>>(`/v1/webhooks/${id}/deliveries`, { query, signal })
      return Promise.all(
        data.map(({ deliveryId }) => call<DeliveryInFull>(`/v1/webhooks/${id}/deliveries/${deliveryId}`, { signal })),
      )
    }),
  )
  return found.flat().filter(({ payload }) => JSON.stringify(payload ?? null).includes(event.requestId))
}
