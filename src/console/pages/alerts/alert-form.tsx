// Makes an alert, or changes one.

import { useState } from 'preact/hooks'
import { useAct } from '../../lib/act.ts'
import { call } from '../../lib/api.ts'
import { SIGNAL_WORDS } from '../../lib/format.ts'
import type { Alert } from '../../lib/types.ts'
import { SelectField, TextField } from '../../ui/field.tsx'
import { FormEnd } from '../../ui/form-end.tsx'
import { METRIC_WORDS, OPERATOR_WORDS } from './words.ts'

/** What the form edits of an alert: as long as it is the same, so is what somebody has typed. */
export const editedOf = ({
  name,
  metric,
  operator,
  threshold,
  windowSeconds,
  cooldownSeconds,
  minEvents,
  filters,
}: Alert): string =>
  JSON.stringify([name, metric, operator, threshold, windowSeconds, cooldownSeconds, minEvents, filters])

export function AlertForm({ from, done }: { readonly from: Alert | null; readonly done: () => void }) {
  const [name, setName] = useState(from?.name ?? '')
  const [metric, setMetric] = useState<Alert['metric']>(from?.metric ?? 'block_rate')
  const [operator, setOperator] = useState<Alert['operator']>(from?.operator ?? 'gt')
  const [threshold, setThreshold] = useState(String(from?.threshold ?? 0.2))
  const [windowSeconds, setWindowSeconds] = useState(String(from?.windowSeconds ?? 300))
  const [cooldownSeconds, setCooldownSeconds] = useState(String(from?.cooldownSeconds ?? 3_600))
  const [minEvents, setMinEvents] = useState(String(from?.minEvents ?? 0))
  const [signal, setSignal] = useState<string>(from?.filters.signal ?? 'bot')
  const act = useAct()
  const submit = async (event: Event) => {
    event.preventDefault()
    const { signal: _, ...others } = from?.filters ?? {}
    const body = {
      name: name.trim(),
      metric,
      operator,
      threshold: Number(threshold),
      windowSeconds: Number(windowSeconds),
      cooldownSeconds: Number(cooldownSeconds),
      minEvents: Number(minEvents),
      filters: metric === 'signal_rate' ? { ...others, signal } : others,
    }
    const write = () =>
      from === null
        ? call('/v1/alerts', { method: 'POST', body })
        : call(`/v1/alerts/${from.id}`, { method: 'PUT', body })
    if (await act.run(write, 'The alert is saved.')) done()
  }
  return (
    <form class="form" onSubmit={submit}>
      <TextField label="Name" value={name} onChange={setName} required maxLength={200} />
      <SelectField label="Watches" value={metric} onChange={setMetric} options={METRIC_WORDS} />
      {metric === 'signal_rate' && (
        <SelectField label="Signal" value={signal} onChange={setSignal} options={Object.entries(SIGNAL_WORDS)} />
      )}
      <div class="row end">
        <SelectField label="Triggers when it" value={operator} onChange={setOperator} options={OPERATOR_WORDS} />
        <TextField
          label="Threshold"
          type="number"
          value={threshold}
          onChange={setThreshold}
          required
          hint="Shares are from 0 to 1."
        />
      </div>
      <div class="row end">
        <TextField
          label="Of the last (s)"
          type="number"
          value={windowSeconds}
          onChange={setWindowSeconds}
          min={60}
          max={86_400}
          required
        />
        <TextField
          label="Again after (s)"
          type="number"
          value={cooldownSeconds}
          onChange={setCooldownSeconds}
          min={60}
          max={604_800}
          required
        />
        <TextField
          label="Not with fewer events than"
          type="number"
          value={minEvents}
          onChange={setMinEvents}
          min={0}
          required
        />
      </div>
      <FormEnd act={act} action="Save" />
    </form>
  )
}
