// Why an event has its verdict: each rule that is asked, each of its conditions with what the event had.

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useAct } from '../../lib/act.ts'
import { call } from '../../lib/api.ts'
import { useAll } from '../../lib/load.ts'
import type { Event, ListedRule, Simulation } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { Empty, Problem, Shown } from '../../ui/state.tsx'
import { StatusChip, VerdictChip } from '../../ui/words.tsx'
import { Trace } from './trace.tsx'

export function Why({ event }: { readonly event: Event }) {
  const rules = useAll<ListedRule>('/v1/rules')
  return (
    <Card title="Why">
      <p class="quiet">
        Rules are asked in order; the first live one that matches decides. Open one to see its conditions against this
        event, as the rule stands now.
      </p>
      <Shown of={rules}>
        {({ data }) => {
          const asked = data.filter(({ status }) => status === 'live' || status === 'monitor')
          if (asked.length === 0) return <Empty title="No rule is live or in monitor">Everybody is allowed.</Empty>
          return (
            <ol class="plain-list">
              {asked.map((rule) => (
                <AskedRule key={rule.id} rule={rule} event={event} />
              ))}
            </ol>
          )
        }}
      </Shown>
    </Card>
  )
}

function AskedRule({ rule, event }: { readonly rule: ListedRule; readonly event: Event }) {
  const matched = event.matchedRules.find(({ id }) => id === rule.id)
  const watched = event.monitorMatches.some(({ id }) => id === rule.id)
  const isDecider = matched?.deciding === true
  const [found, setFound] = useState<Simulation | null>(null)
  const act = useAct()
  const look = (opened: boolean) => {
    if (!opened || found !== null) return
    void act.run(async () => {
      const body = { requestId: event.requestId, ruleId: rule.id }
      setFound(await call<Simulation>('/v1/rules/simulate', { method: 'POST', body }))
    })
  }
  return (
    <li>
      <details open={isDecider} onToggle={({ currentTarget }) => look(currentTarget.open)}>
        <summary>
          <span class="row">
            <span class="quiet">{rule.priority}</span>
            <strong>{rule.name}</strong>
            {isDecider && <VerdictChip of={matched.verdict} />}
            {matched !== undefined && !isDecider && <span class="chip">matched, did not decide</span>}
            {rule.status === 'monitor' && <StatusChip of="monitor" />}
            {watched && <span class="chip">would have decided {rule.action}</span>}
            {matched === undefined && !watched && <span class="quiet">did not match</span>}
          </span>
        </summary>
        <Problem error={act.error} />
        {found !== null && <Trace of={found.trace} isTruncated={found.truncated === true} />}
        <p>
          <Link href={`/rules/${rule.id}`}>Open the rule</Link>
        </p>
      </details>
    </li>
  )
}
