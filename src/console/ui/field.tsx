// A control with its label and what is said about it.

import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface Named {
  readonly label: string
  readonly hint?: ComponentChildren
}

export interface TextFieldProps extends Named {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'datetime-local'
  readonly placeholder?: string
  readonly required?: boolean
  readonly maxLength?: number
  readonly minLength?: number
  readonly autocomplete?: string
  readonly inputMode?: 'numeric'
  readonly pattern?: string
  readonly min?: number
  readonly max?: number
}

export function TextField({ label, hint, onChange, type = 'text', ...input }: TextFieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type={type}
        // Any number: browsers refuse fractions otherwise.
        {...(type === 'number' ? { step: 'any' } : {})}
        {...input}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {hint !== undefined && (
        <span id={`${id}-hint`} class="quiet small">
          {hint}
        </span>
      )}
    </div>
  )
}

export function AreaField({
  label,
  hint,
  value,
  onChange,
  placeholder,
  rows = 6,
}: Named & {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly placeholder?: string
  readonly rows?: number
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={rows}
        value={value}
        placeholder={placeholder}
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {hint !== undefined && <span class="quiet small">{hint}</span>}
    </div>
  )
}

export function SelectField<T extends string>({
  label,
  hint,
  value,
  onChange,
  options,
}: Named & {
  readonly value: T
  readonly onChange: (value: T) => void
  /** Value and what is read of it. */
  readonly options: readonly (readonly [T, string])[]
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
      {hint !== undefined && <span class="quiet small">{hint}</span>}
    </div>
  )
}

export function CheckField({
  label,
  hint,
  checked,
  onChange,
}: Named & { readonly checked: boolean; readonly onChange: (checked: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>
        {label}
        {hint !== undefined && <span class="quiet small"> {hint}</span>}
      </span>
    </label>
  )
}
