// The conditions of a rule: groups within groups, a row for each condition.

import type { ConditionOperator } from '../../../domain/rule.ts'
import type { Event, ListedList, RuleField } from '../../lib/types.ts'
import { Combobox } from '../../ui/combobox.tsx'
import { AreaField, SelectField, TextField } from '../../ui/field.tsx'
import {
  type DraftGroup,
  type DraftLeaf,
  GROUP_DEPTH_MAX,
  isGroup,
  listsFor,
  newGroup,
  newLeaf,
  problemOf,
} from './draft.ts'
import { topValues } from './top-values.ts'
import { fieldOf, fieldsFor, operatorWord } from './words.ts'

export interface Known {
  readonly fields: readonly RuleField[]
  readonly lists: readonly ListedList[]
}

interface GroupProps {
  readonly group: DraftGroup
  readonly known: Known
  /** The latest events, whose values are offered. */
  readonly recent: readonly Event[]
  readonly onChange: (group: DraftGroup) => void
  readonly onRemove?: () => void
  readonly depth?: number
}

export function ConditionGroupEditor({ group, known, recent, onChange, onRemove, depth = 1 }: GroupProps) {
  const replace = (key: number, next: DraftLeaf | DraftGroup | null) =>
    onChange({
      ...group,
      rules: group.rules.flatMap((one) => (one.key !== key ? [one] : next === null ? [] : [next])),
    })
  const add = (one: DraftLeaf | DraftGroup) => onChange({ ...group, rules: [...group.rules, one] })
  return (
    <fieldset class="group">
      <legend class="unseen">Group of conditions, level {depth}</legend>
      <div class="row end">
        <SelectField
          label="Matches when"
          value={group.operator}
          onChange={(operator) => onChange({ ...group, operator })}
          options={[
            ['AND', 'all of these hold'],
            ['OR', 'any of these holds'],
          ]}
        />
        {onRemove !== undefined && (
          <button type="button" onClick={onRemove}>
            Remove the group
          </button>
        )}
      </div>
      {group.rules.map((one) =>
        isGroup(one) ? (
          <ConditionGroupEditor
            key={one.key}
            group={one}
            known={known}
            recent={recent}
            depth={depth + 1}
            onChange={(next) => replace(one.key, next)}
            onRemove={() => replace(one.key, null)}
          />
        ) : (
          <Condition
            key={one.key}
            leaf={one}
            known={known}
            recent={recent}
            onChange={(next) => replace(one.key, next)}
            {...(group.rules.length === 1 && depth === 1 ? {} : { onRemove: () => replace(one.key, null) })}
          />
        ),
      )}
      <div class="row">
        <button type="button" class="slim" onClick={() => add(newLeaf())}>
          Add a condition
        </button>
        {depth < GROUP_DEPTH_MAX && (
          <button type="button" class="slim" onClick={() => add(newGroup())}>
            Add a group
          </button>
        )}
      </div>
    </fieldset>
  )
}

interface ConditionProps {
  readonly leaf: DraftLeaf
  readonly known: Known
  readonly recent: readonly Event[]
  readonly onChange: (leaf: DraftLeaf) => void
  readonly onRemove?: () => void
}

function Condition({ leaf, known, recent, onChange, onRemove }: ConditionProps) {
  const field = fieldOf(known.fields, leaf.field)
  const problem = leaf.field === '' && leaf.text === '' ? null : problemOf(leaf, known.fields, known.lists)
  function chooseField(path: string): void {
    const next = fieldOf(known.fields, path)
    const operator =
      next === null || next.operators.includes(leaf.operator) ? leaf.operator : (next.operators[0] ?? 'equals')
    const isFlag = next?.type === 'boolean'
    onChange({ ...leaf, field: path, operator, text: isFlag && !/^(true|false)$/.test(leaf.text) ? 'true' : leaf.text })
  }
  const operators = field?.operators ?? [leaf.operator]
  return (
    <div class="condition">
      <Combobox
        label="Field"
        value={leaf.field}
        placeholder="signals.bot.detected"
        onChange={chooseField}
        problem={problem}
        options={(text) =>
          fieldsFor(known.fields, text).map(({ path, label, category }) => ({
            value: path,
            about: `${label} · ${category}`,
          }))
        }
      />
      <SelectField
        label="Operator"
        value={leaf.operator}
        onChange={(operator: ConditionOperator) => onChange({ ...leaf, operator })}
        options={operators.map((operator) => [operator, operatorWord(operator)] as const)}
      />
      <ValueInput
        leaf={leaf}
        field={field}
        lists={known.lists}
        recent={recent}
        onChange={(text) => onChange({ ...leaf, text })}
      />
      {onRemove !== undefined && (
        <button type="button" aria-label={`Remove the condition on ${leaf.field || 'nothing yet'}`} onClick={onRemove}>
          ×
        </button>
      )}
      {field?.note !== undefined && <p class="quiet small">{field.note}</p>}
    </div>
  )
}

function ValueInput({
  leaf,
  field,
  lists,
  recent,
  onChange,
}: {
  readonly leaf: DraftLeaf
  readonly field: RuleField | null
  readonly lists: readonly ListedList[]
  readonly recent: readonly Event[]
  readonly onChange: (text: string) => void
}) {
  if (leaf.operator === 'exists' || field?.type === 'boolean') {
    return (
      <SelectField
        label="Value"
        value={leaf.text === 'false' ? 'false' : 'true'}
        onChange={onChange}
        options={[
          ['true', 'yes'],
          ['false', 'no'],
        ]}
      />
    )
  }
  if (leaf.operator === 'in' || leaf.operator === 'not_in') {
    const fitting = listsFor(field, lists)
    const isList = fitting.some(({ name }) => name === leaf.text.trim())
    return (
      <div class="stack">
        {fitting.length > 0 && (
          <SelectField
            label="List"
            value={isList ? leaf.text.trim() : ''}
            onChange={onChange}
            options={[['', 'values below'], ...fitting.map(({ name }) => [name, name] as const)]}
          />
        )}
        {!isList && <AreaField label="Values, one a line" rows={3} value={leaf.text} onChange={onChange} />}
      </div>
    )
  }
  if (field?.type === 'number') {
    return <TextField label="Value" type="number" value={leaf.text} onChange={onChange} placeholder="0" />
  }
  const top = field === null || field.type === 'datetime' ? [] : topValues(recent, leaf.field)
  return (
    <Combobox
      label="Value"
      value={leaf.text}
      onChange={onChange}
      options={(text) =>
        top
          .filter(({ value }) => value.toLowerCase().includes(text.toLowerCase()))
          .map(({ value, count }) => ({
            value,
            about: `${count} of the latest ${recent.length} events`,
          }))
      }
    />
  )
}
