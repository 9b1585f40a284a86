// What the conditions would have done to the events there are: asked again whenever they change.

import { useMemo } from 'preact/hooks'
import type { ConditionGroup, RuleAction } from '../../../domain/rule.ts'
import { call, environment } from '../../lib/api.ts'
import { percent, wholeText } from '../../lib/format.ts'
import { useLoadBy, useSettled } from '../../lib/load.ts'
import type { Backtest as BacktestAnswer } from '../../lib/types.ts'
import { Bars } from '../../ui/bars.tsx'
import { CopyCurl } from '../../ui/copy.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Problem, Reading } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { FactList, Id, MomentText } from '../../ui/words.tsx'

const SETTLE_MS = 500
const DAYS = 7
const SAMPLES = 10
/** Of all traffic: beyond it a rule that blocks is worth a second look. */
const BLOCKED_SHARE_WARNED = 0.05

interface BacktestProps {
  /** null: they are not whole yet. */
  readonly conditions: ConditionGroup | null
  readonly action: RuleAction
}

export function BacktestPanel({ conditions, action }: BacktestProps) {
  const asked = useMemo(
    () => (conditions === null ? null : JSON.stringify({ conditions, action, days: DAYS, sampleSize: SAMPLES })),
    [conditions, action],
  )
  const settled = useSettled(asked, SETTLE_MS)
  const loaded = useLoadBy<BacktestAnswer>(settled === null ? null : `${environment.value} ${settled}`, (signal) =>
    call<BacktestAnswer>('/v1/rules/backtest', { method: 'POST', body: JSON.parse(settled ?? '{}'), signal }),
  )
  const body = settled === null ? undefined : JSON.parse(settled)
  return (
    <Card
      title={`Backtest, last ${DAYS} days`}
      actions={body !== undefined && <CopyCurl path="/v1/rules/backtest" ask={{ method: 'POST', body }} />}
    >
      <div aria-live="polite" aria-busy={loaded.isLoading}>
        {settled === null ? (
          <Empty title="Not whole yet">
            Finish the conditions, and what they would have done stands here as you type.
          </Empty>
        ) : loaded.error !== null ? (
          <Problem error={loaded.error} retry={loaded.reload} />
        ) : loaded.data === undefined ? (
          <Reading />
        ) : (
          <Answer of={loaded.data} action={action} />
        )}
      </div>
    </Card>
  )
}

function Answer({ of: answer, action }: { readonly of: BacktestAnswer; readonly action: RuleAction }) {
  if (answer.totalEvents === 0) return <Empty title="No events to test on">Send some first.</Empty>
  const impact = Object.entries(answer.impact)
  return (
    <div class="stack">
      <p>
        <strong>
          {wholeText(answer.matchCount)} of {wholeText(answer.totalEvents)} events match ({percent(answer.matchRate)})
        </strong>{' '}
        <span class="quiet">asked in {answer.durationMs} ms</span>
      </p>
      {action.verdict === 'block' && answer.matchRate > BLOCKED_SHARE_WARNED && (
        <p class="hint">
          More than {percent(BLOCKED_SHARE_WARNED)} of all events would be blocked. Watch it in monitor first.
        </p>
      )}
      <FactList of={[['False positives', <FalsePositives key="f" of={answer} />], ...labelled(answer)]} />
      {impact.length > 0 && (
        <Table label="Verdicts that would have been others" head={['Was → would be', { number: 'Events' }]}>
          {impact.map(([change, events]) => (
            <tr key={change}>
              <th scope="row">{change.replace('→', ' → ')}</th>
              <td class="number">{wholeText(events)}</td>
            </tr>
          ))}
        </Table>
      )}
      {answer.byDay.length > 1 && (
        <Bars
          of={answer.byDay.map(({ day, matched, total }) => ({
            name: day,
            count: matched,
            share: total === 0 ? 0 : matched / total,
          }))}
        />
      )}
      {answer.sample.length > 0 && (
        <Table label="Some events that match" head={['Event', 'Visitor', 'Time']}>
          {answer.sample.map(({ requestId, visitorId, timestamp }) => (
            <tr key={requestId}>
              <td>
                <Id of={requestId} />
              </td>
              <td>
                <Id of={visitorId} />
              </td>
              <td class="once">
                <MomentText at={timestamp} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </div>
  )
}

const BASES: Readonly<Record<BacktestAnswer['fprBasis'], string>> = {
  labels: 'counted on events you labelled legitimate',
  proxy:
    'estimated on visitors who came back on several days and were neither suspect nor stopped, as too few events are labelled',
  none: 'not known: label events as legitimate, so that it can be',
}

function FalsePositives({ of: { estimatedFpr, fprBasis, fprInterval } }: { readonly of: BacktestAnswer }) {
  if (fprBasis === 'none') return <span class="quiet">{BASES.none}</span>
  const [low, high] = fprInterval ?? []
  return (
    <>
      {percent(estimatedFpr)}
      {low !== undefined && high !== undefined && ` (95 %: ${percent(low)} to ${percent(high)})`}
      <br />
      <span class="quiet small">{BASES[fprBasis]}</span>
    </>
  )
}

const labelled = ({ precision, recall, labeled }: BacktestAnswer): readonly (readonly [string, unknown])[] => [
  ...(precision === null ? [] : [['Precision', percent(precision)] as const]),
  ...(recall === null ? [] : [['Recall', percent(recall)] as const]),
  ['Labels', `${wholeText(labeled.fraud)} fraud, ${wholeText(labeled.legitimate)} legitimate`],
]
