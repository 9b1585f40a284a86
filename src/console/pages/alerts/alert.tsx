// One alert: what it watches, and its incidents.

import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import { span } from '../../lib/format.ts'
import type { PageProps } from '../../lib/later.tsx'
import { useLoad, usePages } from '../../lib/load.ts'
import type { Alert, Incident } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { DeleteButton } from '../../ui/delete-button.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { PagedTable } from '../../ui/table.tsx'
import { FactList, MomentText, StatusChip } from '../../ui/words.tsx'
import { AlertForm, editedOf } from './alert-form.tsx'
import { conditionOf } from './words.ts'

export function AlertPage({ id }: PageProps) {
  const path = `/v1/alerts/${encodeURIComponent(id)}`
  const loaded = useLoad<Alert>(path)
  const incidents = usePages<Incident>(`${path}/incidents`)
  return (
    <Page title={loaded.data?.name ?? 'Alert'} about={<code>{id}</code>} actions={<CopyCurl path={path} />}>
      <Shown of={loaded}>
        {(alert) => (
          <>
            <section class="card">
              <FactList
                of={[
                  ['Status', <StatusChip key="s" of={alert.status} />],
                  ['When', conditionOf(alert)],
                  ['Of the last', span(alert.windowSeconds)],
                  ['Again after', span(alert.cooldownSeconds)],
                ]}
              />
              {can('alerts:write') && <Switch alert={alert} reload={loaded.reload} />}
            </section>
            <div class="columns">
              <Card title="Incidents">
                <PagedTable
                  label="Incidents"
                  head={['Triggered', { number: 'Value' }, 'From', 'To']}
                  of={incidents}
                  row={(incident) => (
                    <tr key={incident.id}>
                      <td class="once">
                        <MomentText at={incident.triggeredAt} />
                      </td>
                      <td class="number">{incident.value}</td>
                      <td class="once">
                        <MomentText at={incident.windowStart} />
                      </td>
                      <td class="once">
                        <MomentText at={incident.windowEnd} />
                      </td>
                    </tr>
                  )}
                  empty={<Empty title="It was never triggered" />}
                />
              </Card>
              {can('alerts:write') && (
                <Card title="Change">
                  <AlertForm key={editedOf(alert)} from={alert} done={loaded.reload} />
                </Card>
              )}
            </div>
          </>
        )}
      </Shown>
    </Page>
  )
}

function Switch({ alert, reload }: { readonly alert: Alert; readonly reload: () => void }) {
  const act = useAct()
  const path = `/v1/alerts/${alert.id}`
  const isActive = alert.status === 'active'
  const turn = () =>
    act.run(
      async () => {
        await call(path, { method: 'PUT', body: { status: isActive ? 'paused' : 'active' } })
        reload()
      },
      isActive ? 'Paused.' : 'Watching again.',
    )
  return (
    <div class="row">
      <button type="button" disabled={act.isBusy} onClick={() => void turn()}>
        {isActive ? 'Pause' : 'Watch again'}
      </button>
      <DeleteButton title="Delete the alert" path={path} to="/alerts">
        <p>Its incidents go with it.</p>
      </DeleteButton>
      <Problem error={act.error} />
    </div>
  )
}
