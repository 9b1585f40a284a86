// What a rule does besides its verdict.

import type { SideEffect } from '../../../domain/rule.ts'
import { useAll } from '../../lib/load.ts'
import type { ListedList, ListedWebhook } from '../../lib/types.ts'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'

const EFFECTS_MAX = 10
const TYPES = [
  ['addToList', 'Add to a list'],
  ['removeFromList', 'Take off a list'],
  ['webhook', 'Tell a webhook'],
  ['slack', 'Write to Slack'],
  ['log', 'Write a log line'],
] as const
const VALUES: Readonly<Record<ListedList['type'], string>> = { visitor: 'visitorId', ip: 'ip.address', email: 'email' }

interface EffectsProps {
  readonly effects: readonly SideEffect[]
  readonly lists: readonly ListedList[]
  readonly onChange: (effects: readonly SideEffect[]) => void
}

export function Effects({ effects, lists, onChange }: EffectsProps) {
  const webhooks = useAll<ListedWebhook>('/v1/webhooks')
  const fresh = (type: SideEffect['type']): SideEffect => {
    const [list] = lists
    if (type === 'addToList' || type === 'removeFromList') {
      return { type, list: list?.name ?? '', value: VALUES[list?.type ?? 'visitor'] }
    }
    if (type === 'webhook') return { type, webhookId: webhooks.data?.data[0]?.id ?? '' }
    return type === 'slack'
      ? { type, url: '', message: '{{visitorId}} matched' }
      : { type: 'log', level: 'info', message: '' }
  }
  const replace = (at: number, next: SideEffect) => onChange(effects.map((one, i) => (i === at ? next : one)))
  return (
    <fieldset class="form">
      <legend>And besides</legend>
      {effects.map((effect, i) => (
        <div key={i} class="group">
          <div class="row end">
            <SelectField
              label="Effect"
              value={effect.type}
              onChange={(type) => replace(i, fresh(type))}
              options={TYPES}
            />
            <EffectFields
              effect={effect}
              lists={lists}
              webhooks={webhooks.data?.data ?? []}
              onChange={(next) => replace(i, next)}
            />
            <button type="button" onClick={() => onChange(effects.filter((_, at) => at !== i))}>
              Remove
            </button>
          </div>
        </div>
      ))}
      {effects.length < EFFECTS_MAX && (
        <div>
          <button type="button" class="slim" onClick={() => onChange([...effects, fresh('addToList')])}>
            Add an effect
          </button>
        </div>
      )}
    </fieldset>
  )
}

interface FieldsProps {
  readonly effect: SideEffect
  readonly lists: readonly ListedList[]
  readonly webhooks: readonly ListedWebhook[]
  readonly onChange: (effect: SideEffect) => void
}

function EffectFields({ effect, lists, webhooks, onChange }: FieldsProps) {
  if (effect.type === 'webhook') {
    return (
      <SelectField
        label="Webhook"
        value={effect.webhookId}
        onChange={(webhookId) => onChange({ ...effect, webhookId })}
        options={[['', 'choose'], ...webhooks.map(({ id, url }) => [id, url] as const)]}
      />
    )
  }
  if (effect.type === 'slack') {
    return (
      <>
        <TextField
          label="Address"
          value={effect.url}
          onChange={(url) => onChange({ ...effect, url })}
          maxLength={1_024}
          hint="Shown masked once it is saved."
        />
        <TextField
          label="Message"
          value={effect.message ?? ''}
          onChange={(message) => onChange({ ...effect, message })}
        />
      </>
    )
  }
  if (effect.type === 'log') {
    return (
      <TextField
        label="Message"
        value={effect.message ?? ''}
        onChange={(message) => onChange({ ...effect, message })}
      />
    )
  }
  const choose = (list: string) =>
    onChange({ ...effect, list, value: VALUES[lists.find(({ name }) => name === list)?.type ?? 'visitor'] })
  return (
    <>
      <SelectField
        label="List"
        value={effect.list}
        onChange={choose}
        options={[
          ['', lists.length === 0 ? 'make a list first' : 'choose'],
          ...lists.map(({ name }) => [name, name] as const),
        ]}
      />
      <TextField label="Value" value={effect.value} onChange={(value) => onChange({ ...effect, value })} />
      {effect.type === 'addToList' && (
        <CheckField
          label="Only what your server said"
          hint="Accounts and e-mails that only a page claims are left out."
          checked={effect.verifiedOnly === true}
          onChange={(verifiedOnly) => onChange({ ...effect, verifiedOnly })}
        />
      )}
    </>
  )
}
