// Who changed what.

import { usePages } from '../../lib/load.ts'
import { usePlace } from '../../lib/place.ts'
import type { AuditEntry } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { PagedTable } from '../../ui/table.tsx'
import { Id, MomentText } from '../../ui/words.tsx'

const RESOURCES = [
  ['', 'everything'],
  ['rule', 'rules'],
  ['list', 'lists'],
  ['webhook', 'webhooks'],
  ['alert', 'alerts'],
  ['key', 'keys'],
  ['event', 'events'],
  ['visitor', 'visitors'],
  ['person', 'people'],
  ['workspace', 'the workspace'],
] as const

export function Audit() {
  const [{ of: asked = '' }, ask] = usePlace()
  const resource = RESOURCES.find(([one]) => one === asked)?.[0] ?? ''
  const pages = usePages<AuditEntry>('/v1/audit', { query: { resource, limit: 50 } })
  return (
    <Card title="Audit log" actions={<CopyCurl path="/v1/audit" ask={{ query: { resource } }} />}>
      <SelectField label="Changes of" value={resource} onChange={(of) => ask({ of })} options={RESOURCES} />
      <PagedTable
        label="Changes"
        head={['Time', 'By', 'What', 'Which', 'Details']}
        of={pages}
        row={(entry) => (
          <tr key={`${entry.at} ${entry.id} ${entry.action}`}>
            <td class="once">
              <MomentText at={entry.at} />
            </td>
            <td class="wide">
              {entry.by.label ?? entry.actor}
              <br />
              <span class="quiet small">{entry.by.type}</span>
            </td>
            <td>
              {entry.resource} · {entry.action}
            </td>
            <td class="once">
              <Id of={entry.id} />
            </td>
            <td class="wide">
              <details>
                <summary>before and after</summary>
                <pre>{JSON.stringify({ before: entry.before, after: entry.after }, null, 2)}</pre>
              </details>
            </td>
          </tr>
        )}
        empty={<Empty title="Nothing was changed" />}
      />
    </Card>
  )
}
