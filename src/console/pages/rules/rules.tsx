// All rules in the order in which they are asked; the order changes by dragging, or by two buttons.

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call, can, useLongAct } from '../../lib/api.ts'
import { useAll } from '../../lib/load.ts'
import type { ListedRule } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { MomentText, StatusChip, VerdictChip } from '../../ui/words.tsx'
import { movesFor } from './order.ts'
import { TEMPLATES } from './templates.ts'

export function Rules() {
  const loaded = useAll<ListedRule>('/v1/rules')
  const mayWrite = can('rules:write')
  return (
    <Page
      title="Rules"
      about="Asked from the top; the first live one that matches decides."
      actions={
        <>
          {mayWrite && (
            <Link class="button primary" href="/rules/new">
              New rule
            </Link>
          )}
          <CopyCurl path="/v1/rules" />
        </>
      }
    >
      <Card title="All rules">
        <Shown of={loaded}>
          {({ data, total }) =>
            total === 0 ? (
              <Empty title="No rule yet">
                <p>Everybody is allowed. Start from one of these:</p>
                <ul class="plain-list">
                  {TEMPLATES.map(({ rule, about }, i) => (
                    <li key={rule.name}>
                      <Link href={`/rules/new?template=${i}`}>{rule.name}</Link>: {about}
                    </li>
                  ))}
                </ul>
              </Empty>
            ) : (
              <Ordered rules={data} reload={loaded.reload} mayWrite={mayWrite} />
            )
          }
        </Shown>
      </Card>
    </Page>
  )
}

function Ordered({
  rules,
  reload,
  mayWrite,
}: {
  readonly rules: readonly ListedRule[]
  readonly reload: () => void
  readonly mayWrite: boolean
}) {
  const [dragged, setDragged] = useState<number | null>(null)
  const act = useAct()
  const startLong = useLongAct()
  const move = (from: number, to: number) =>
    act.run(
      () =>
        startLong(`Moving ${rules[from]?.name}`, async (environment) => {
          for (const { id, priority } of movesFor(rules, from, to)) {
            await call(`/v1/rules/${id}`, { method: 'PUT', body: { priority }, environment })
          }
          reload()
        }),
      `${rules[from]?.name} is asked ${to + 1}. now.`,
    )
  return (
    <>
      <Problem error={act.error} />
      <Table
        label="Rules in the order they are asked"
        head={['Order', 'Name', 'Status', 'Then', 'Conditions', 'Created']}
      >
        {rules.map((rule, i) => (
          <tr
            key={rule.id}
            class={dragged === i ? 'dragging' : ''}
            draggable={mayWrite}
            onDragStart={() => setDragged(i)}
            onDragEnd={() => setDragged(null)}
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault()
              if (dragged !== null && dragged !== i) void move(dragged, i)
            }}
          >
            <td class="once">
              {rule.priority}{' '}
              {mayWrite && (
                <>
                  <button
                    type="button"
                    class="slim"
                    aria-label={`Ask ${rule.name} earlier`}
                    disabled={i === 0 || act.isBusy}
                    onClick={() => void move(i, i - 1)}
                  >
                    ↑
                  </button>{' '}
                  <button
                    type="button"
                    class="slim"
                    aria-label={`Ask ${rule.name} later`}
                    disabled={i === rules.length - 1 || act.isBusy}
                    onClick={() => void move(i, i + 1)}
                  >
                    ↓
                  </button>
                </>
              )}
            </td>
            <th scope="row" class="wide">
              <Link href={`/rules/${rule.id}`}>{rule.name}</Link>
            </th>
            <td>
              <StatusChip of={rule.status} />
            </td>
            <td>
              <VerdictChip of={rule.action} />
            </td>
            <td>
              {rule.conditions.operator === 'AND' ? 'all' : 'any'} of {rule.conditions.count}
            </td>
            <td class="once">
              <MomentText at={rule.createdAt} relative />
            </td>
          </tr>
        ))}
      </Table>
    </>
  )
}
