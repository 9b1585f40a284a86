// What a monitored rule would have changed.

import { percent, wholeText } from '../../lib/format.ts'
import { useLoad } from '../../lib/load.ts'
import type { MonitorReport, Rule } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText } from '../../ui/words.tsx'

export function Monitor({ rule }: { readonly rule: Rule }) {
  const loaded = useLoad<MonitorReport>(rule.status === 'monitor' ? `/v1/rules/${rule.id}/monitor` : null)
  if (rule.status !== 'monitor') {
    return (
      <section class="card">
        <Empty title="The rule is not in monitor">
          In monitor it is asked with every event and decides nothing; here stands what it would have changed.
        </Empty>
      </section>
    )
  }
  return (
    <Card title="What it would have changed">
      <Shown of={loaded}>
        {({ evaluated, matched, wouldChange, since }) => (
          <>
            <p>
              Since <MomentText at={since} /> it was asked {wholeText(evaluated)} times and matched {wholeText(matched)}{' '}
              ({percent(evaluated === 0 ? 0 : matched / evaluated)}).
            </p>
            <Table label="Verdicts that would be others" head={['Was → would be', { number: 'Events' }]}>
              {Object.entries(wouldChange).map(([change, events]) => (
                <tr key={change}>
                  <th scope="row">{change.replace('→', ' → ')}</th>
                  <td class="number">{wholeText(events)}</td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </Shown>
    </Card>
  )
}
