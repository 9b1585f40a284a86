// Tries a rule on one event: which of its conditions hold, and with what.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call } from '../../lib/api.ts'
import type { Rule, Simulation } from '../../lib/types.ts'
import { TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/state.tsx'
import { Trace } from '../events/trace.tsx'

export function TryOn({ rule }: { readonly rule: Rule }) {
  const [requestId, setRequestId] = useState('')
  const [found, setFound] = useState<Simulation | null>(null)
  const act = useAct()
  const submit = (event: Event) => {
    event.preventDefault()
    void act.run(async () => {
      const body = { requestId: requestId.trim(), ruleId: rule.id }
      setFound(await call<Simulation>('/v1/rules/simulate', { method: 'POST', body }))
    })
  }
  return (
    <Card title="Try on an event">
      <form class="row end" onSubmit={submit}>
        <TextField label="Event" value={requestId} onChange={setRequestId} placeholder="req_…" required />
        <button type="submit" class="primary" disabled={act.isBusy}>
          Try
        </button>
      </form>
      <Problem error={act.error} />
      {found !== null && (
        <div role="status">
          <p>
            <strong>{found.matched ? 'It matches.' : 'It does not match.'}</strong>
          </p>
          <Trace of={found.trace} isTruncated={found.truncated === true} />
        </div>
      )}
    </Card>
  )
}
