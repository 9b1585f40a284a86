// Alerts: figures that are watched.

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { can } from '../../lib/api.ts'
import { span } from '../../lib/format.ts'
import { useLoad } from '../../lib/load.ts'
import type { Alert, OffsetPage } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText, StatusChip } from '../../ui/words.tsx'
import { AlertForm } from './alert-form.tsx'
import { conditionOf } from './words.ts'

export function Alerts() {
  const loaded = useLoad<OffsetPage<Alert>>('/v1/alerts', { query: { limit: 100 } })
  const [isMaking, setIsMaking] = useState(false)
  return (
    <Page
      title="Alerts"
      about="Looked at every half minute; webhooks are told by alert.triggered."
      actions={
        <>
          {can('alerts:write') && (
            <button type="button" class="primary" onClick={() => setIsMaking(true)}>
              New alert
            </button>
          )}
          <CopyCurl path="/v1/alerts" />
        </>
      }
    >
      <Card title="All alerts">
        <Shown of={loaded}>
          {({ data, total }) =>
            total === 0 ? (
              <Empty title="No alert yet">
                Have yourself told when more are blocked than usual, or deliveries fail.
              </Empty>
            ) : (
              <Table label="Alerts" head={['Name', 'When', 'Of the last', 'Status', 'Changed']}>
                {data.map((alert) => (
                  <tr key={alert.id}>
                    <th scope="row" class="wide">
                      <Link href={`/alerts/${alert.id}`}>{alert.name}</Link>
                    </th>
                    <td class="wide">{conditionOf(alert)}</td>
                    <td class="once">{span(alert.windowSeconds)}</td>
                    <td>
                      <StatusChip of={alert.status} />
                    </td>
                    <td class="once">
                      <MomentText at={alert.updatedAt} relative />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </Card>
      {isMaking && (
        <Dialog title="New alert" onClose={() => setIsMaking(false)}>
          <AlertForm
            from={null}
            done={() => {
              setIsMaking(false)
              loaded.reload()
            }}
          />
        </Dialog>
      )}
    </Page>
  )
}
