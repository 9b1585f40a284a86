// The deliveries that an event caused.

import { Link } from 'wouter-preact'
import { call, environment } from '../../lib/api.ts'
import { useLoadBy } from '../../lib/load.ts'
import type { CursorPage, Delivery, DeliveryInFull, Event, ListedWebhook, OffsetPage } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { StatusChip } from '../../ui/words.tsx'

const WEBHOOKS_MAX = 100
const DELIVERIES_PER_CALL = 100
const BODIES_MAX = 60
/** A delivery has the time at which its event was accepted; that of a list which the event changed has a later one. */
const AFTER_MS = 60_000
const PIECES = 4

interface Found {
  readonly deliveries: readonly Delivery[]
  /** Whether all that could be of the event was looked at. */
  readonly isWhole: boolean
}

export function Deliveries({ event }: { readonly event: Event }) {
  const loaded = useLoadBy(`${environment.value} deliveries ${event.requestId}`, (signal) =>
    readDeliveries(event, signal),
  )
  return (
    <Card title="Deliveries">
      <Shown of={loaded}>
        {({ deliveries, isWhole }) => (
          <>
            {deliveries.length > 0 && (
              <Table label="Deliveries of this event" head={['Type', 'Status', 'Webhook', { number: 'Attempts' }]}>
                {deliveries.map(({ deliveryId, webhookId, eventType, status, attempts }) => (
                  <tr key={deliveryId}>
                    <td>{eventType}</td>
                    <td>
                      <StatusChip of={status} />
                    </td>
                    <td>
                      <Link href={`/webhooks/${webhookId}?delivery=${deliveryId}`}>{webhookId}</Link>
                    </td>
                    <td class="number">{attempts}</td>
                  </tr>
                ))}
              </Table>
            )}
            {deliveries.length === 0 && isWhole && (
              <Empty title="No delivery">
                No webhook was told of this event within a minute, or what it was told is no longer kept.
              </Empty>
            )}
            {deliveries.length === 0 && !isWhole && (
              <Empty title="None found">
                More was told around then than is looked through here: the logs of the webhooks have all of it.
              </Empty>
            )}
            {deliveries.length > 0 && !isWhole && (
              <p class="quiet small">More was told around then than is looked through here: there may be others.</p>
            )}
          </>
        )}
      </Shown>
    </Card>
  )
}

/**
 * Only what was sent names the event, so bodies are read, each once for all webhooks that were told the same. Where much is told, the time after
 * the event is looked through in pieces, from its beginning until something is found.
 */
async function readDeliveries(event: Event, signal: AbortSignal): Promise<Found> {
  const webhooks = await call<OffsetPage<ListedWebhook>>('/v1/webhooks', { query: { limit: WEBHOOKS_MAX }, signal })
  const deliveries: Delivery[] = []
  let isCut = webhooks.data.length < webhooks.total
  let bodies = 0
  let fromMs = new Date(event.timestamp).getTime()
  const untilMs = fromMs + AFTER_MS
  let spanMs = AFTER_MS
  while (fromMs < untilMs && deliveries.length === 0 && bodies < BODIES_MAX) {
    const toMs = Math.min(fromMs + spanMs, untilMs)
    const pages = await Promise.all(webhooks.data.map(({ id }) => readPiece(id, fromMs, toMs, signal)))
    const isTooMuch = pages.some(({ hasMore }) => hasMore)
    if (isTooMuch && spanMs > 1) {
      spanMs = Math.ceil(spanMs / PIECES)
      continue
    }
    const told = new Map<string, Delivery[]>()
    for (const one of pages.flatMap(({ data }) => data)) told.set(one.eventId, [...(told.get(one.eventId) ?? []), one])
    // An id begins with its time.
    const inTime = [...told].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, BODIES_MAX - bodies)
    const found = await Promise.all(inTime.map(([, all]) => isAbout(event.requestId, all[0], signal)))
    deliveries.push(...inTime.flatMap(([, all], i) => (found[i] ? all : [])))
    bodies += inTime.length
    isCut ||= isTooMuch || inTime.length < told.size
    fromMs = toMs
    spanMs *= PIECES
  }
  return { deliveries, isWhole: fromMs === untilMs && !isCut }
}

/** Deliveries of a webhook from one moment until before another. */
function readPiece(
  webhookId: string,
  fromMs: number,
  toMs: number,
  signal: AbortSignal,
): Promise<CursorPage<Delivery>> {
  const [after, before] = [fromMs, toMs].map((ms) => new Date(ms).toISOString())
  const query = { after, before, limit: DELIVERIES_PER_CALL }
  return call<CursorPage<Delivery>>(`/v1/webhooks/${webhookId}/deliveries`, { query, signal })
}

async function isAbout(requestId: string, delivery: Delivery | undefined, signal: AbortSignal): Promise<boolean> {
  if (delivery === undefined) return false
  const path = `/v1/webhooks/${delivery.webhookId}/deliveries/${delivery.deliveryId}`
  const { payload } = await call<DeliveryInFull>(path, { signal })
  return JSON.stringify(payload ?? null).includes(requestId)
}
