// Sends an example and shows what the receiver made of it.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call, can } from '../../lib/api.ts'
import type { TestedDelivery, Webhook } from '../../lib/types.ts'
import { SelectField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/state.tsx'
import { Raw } from '../events/raw.tsx'
import { EVENT_TYPE_WORDS } from './types.ts'

const PLAIN = [
  ['identification', 'identification'],
  ['rule_match', 'rule_match'],
  ['list_update', 'list_update'],
] as const

export function TestDelivery({ webhook }: { readonly webhook: Webhook }) {
  const types = webhook.id.startsWith('whk_') ? PLAIN : EVENT_TYPE_WORDS.map(([type]) => [type, type] as const)
  const [type, setType] = useState<string>(types[0]?.[0] ?? '')
  const [answer, setAnswer] = useState<TestedDelivery | null>(null)
  const act = useAct()
  const send = () =>
    act.run(async () => {
      setAnswer(null)
      setAnswer(
        await call<TestedDelivery>(`/v1/webhooks/${webhook.id}/test`, { method: 'POST', body: { eventType: type } }),
      )
    })
  if (!can('webhooks:write')) return <p class="quiet">Sending a test takes an editor.</p>
  return (
    <Card title="Test">
      <div class="row end">
        <SelectField label="Example of" value={type} onChange={setType} options={types} />
        <button type="button" class="primary" disabled={act.isBusy} onClick={() => void send()}>
          {act.isBusy ? 'Sending…' : 'Send'}
        </button>
      </div>
      <Problem error={act.error} />
      {answer !== null && (
        <div role="status">
          <p>
            {answer.success ? 'The receiver took it' : 'The receiver did not take it'}:{' '}
            <strong>{answer.statusCode ?? answer.error}</strong> after {Math.round(answer.durationMs)} ms.
          </p>
          <Raw of={answer.payload} />
        </div>
      )}
    </Card>
  )
}
