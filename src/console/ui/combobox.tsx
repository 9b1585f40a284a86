// A text box that offers what fits what is typed (ARIA combobox with a list, as the authoring practices have it).

import { useId, useRef, useState } from 'preact/hooks'

export interface Option {
  readonly value: string
  readonly about?: string
}

export interface ComboboxProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly options: (text: string) => readonly Option[]
  readonly problem?: string | null
  readonly placeholder?: string
}

const SHOWN_MAX = 60

export function Combobox({ label, value, onChange, options, problem = null, placeholder }: ComboboxProps) {
  const id = useId()
  const [isOpen, setIsOpen] = useState(false)
  const [at, setAt] = useState(0)
  const [typed, setTyped] = useState<string | null>(null)
  const list = useRef<HTMLDivElement>(null)
  const offered = isOpen ? options(typed ?? '').slice(0, SHOWN_MAX) : []

  const close = () => {
    setIsOpen(false)
    setTyped(null)
  }
  const choose = (option: Option | undefined) => {
    if (option !== undefined) onChange(option.value)
    close()
  }
  const move = (to: number) => {
    const next = Math.max(0, Math.min(offered.length - 1, to))
    setAt(next)
    list.current?.children[next]?.scrollIntoView({ block: 'nearest' })
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      if (isOpen) move(at + (event.key === 'ArrowDown' ? 1 : -1))
      else setIsOpen(true)
    } else if (event.key === 'Enter' && isOpen && offered.length > 0) {
      event.preventDefault()
      choose(offered[at])
    } else if (event.key === 'Escape' && isOpen) {
      event.preventDefault()
      close()
    }
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="combobox">
        <input
          id={id}
          role="combobox"
          aria-expanded={offered.length > 0}
          aria-controls={`${id}-options`}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && offered[at] !== undefined ? `${id}-${at}` : undefined}
          aria-invalid={problem !== null}
          aria-describedby={problem === null ? undefined : `${id}-problem`}
          autocomplete="off"
          spellcheck={false}
          value={value}
          placeholder={placeholder}
          onInput={(event) => {
            onChange(event.currentTarget.value)
            setTyped(event.currentTarget.value)
            setIsOpen(true)
            setAt(0)
          }}
          onClick={() => setIsOpen(true)}
          onKeyDown={onKeyDown}
          onBlur={close}
        />
        {offered.length > 0 && (
          <div id={`${id}-options`} ref={list} class="options" role="listbox" aria-label={label}>
            {offered.map((option, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the focus stays in the box, whose keys choose.
              <div
                key={option.value}
                id={`${id}-${i}`}
                role="option"
                aria-selected={i === at}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => choose(option)}
              >
                {option.value}
                {option.about !== undefined && (
                  <>
                    <br />
                    <span class="quiet small">{option.about}</span>
                  </>
                )}
              </div>
            ))}
          </div>
        )}
      </div>
      {problem !== null && (
        <span id={`${id}-problem`} class="small problem">
          {problem}
        </span>
      )}
    </div>
  )
}
