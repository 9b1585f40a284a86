// What events are searched by: the state is the address of the page, so that a search can be sent to somebody.

import { useState } from 'preact/hooks'
import { SIGNAL_WORDS } from '../../lib/format.ts'
import { SelectField, TextField } from '../../ui/field.tsx'

/** Names of the query of `GET /v1/events`. */
export const FILTERS = [
  'verdict',
  'signal',
  'visitorId',
  'possibleVisitorId',
  'linkedId',
  'email',
  'ip',
  'country',
  'platform',
  'browser',
  'deviceType',
  'method',
  'keyKind',
  'label',
  'ruleId',
  'urlHost',
  'asn',
  'suspectMin',
  'suspectMax',
  'confidenceMin',
  'confidenceMax',
  'after',
  'before',
] as const

export type Search = Readonly<Record<string, string>>

/** The filters that are set, tags included. */
export const searchOf = (asked: Search): Search =>
  Object.fromEntries(
    Object.entries(asked).filter(([name]) => FILTERS.some((one) => one === name) || name.startsWith('tag.')),
  )

const ANY = ['', 'any'] as const
const choices = (...values: readonly string[]) => [ANY, ...values.map((value) => [value, value] as const)]
const CHOICES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  verdict: choices('allow', 'challenge', 'block'),
  signal: [ANY, ...Object.entries(SIGNAL_WORDS)],
  platform: choices('Windows', 'macOS', 'Linux', 'ChromeOS', 'iOS', 'Android', 'other'),
  deviceType: choices('desktop', 'mobile', 'tablet', 'other'),
  method: choices('token', 'exact', 'linked', 'new'),
  keyKind: choices('public', 'secret'),
  label: choices('fraud', 'legitimate', 'none'),
}
const WORDS: Readonly<Record<string, string>> = {
  verdict: 'Verdict',
  signal: 'Signal',
  visitorId: 'Visitor id',
  possibleVisitorId: 'Possible visitor id',
  linkedId: 'Account',
  email: 'E-mail, whole',
  ip: 'Address or range',
  country: 'Country, two letters',
  platform: 'Platform',
  browser: 'Browser, such as Chrome 147',
  deviceType: 'Device',
  method: 'Recognised by',
  keyKind: 'Key',
  label: 'Label',
  ruleId: 'Rule id',
  urlHost: 'Host of the page',
  asn: 'Number of the provider (ASN)',
  suspectMin: 'Suspect from',
  suspectMax: 'Suspect to',
  confidenceMin: 'Confidence from',
  confidenceMax: 'Confidence to',
  after: 'After (UTC)',
  before: 'Before (UTC)',
}
const ALWAYS = ['verdict', 'signal', 'linkedId', 'ip', 'country'] as const
const TIMES = ['after', 'before']
const NUMBERS = ['suspectMin', 'suspectMax', 'confidenceMin', 'confidenceMax', 'asn']
export const wordOf = (name: string): string => WORDS[name] ?? name

interface FiltersProps {
  readonly search: Search
  readonly ask: (changes: Search) => void
}

export function Filters({ search, ask }: FiltersProps) {
  const [isOpen, setIsOpen] = useState(false)
  const shown = isOpen ? FILTERS : ALWAYS
  return (
    <div class="form">
      <div class="row end">
        {shown.map((name) => (
          <Filter key={name} name={name} value={search[name] ?? ''} ask={ask} />
        ))}
        {isOpen && <TagFilter ask={ask} />}
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? 'Fewer filters' : 'More filters'}
        </button>
      </div>
      <Chosen search={search} ask={ask} />
    </div>
  )
}

function Filter({
  name,
  value,
  ask,
}: {
  readonly name: string
  readonly value: string
  readonly ask: (changes: Search) => void
}) {
  const options = CHOICES[name]
  if (options !== undefined) {
    return (
      <SelectField
        label={wordOf(name)}
        value={value}
        options={options}
        onChange={(chosen) => ask({ [name]: chosen })}
      />
    )
  }
  return <TextFilter key={value} name={name} value={value} ask={ask} />
}

/** As the box for times shows it, in UTC; '' for what is no time. */
const minuteOf = (time: string): string =>
  Number.isNaN(Date.parse(time)) ? '' : new Date(time).toISOString().slice(0, 'yyyy-mm-ddThh:mm'.length)

/** Asks when the box is left or Enter is pressed, not with every letter. */
function TextFilter({
  name,
  value,
  ask,
}: {
  readonly name: string
  readonly value: string
  readonly ask: (changes: Search) => void
}) {
  const isTime = TIMES.includes(name)
  const shown = isTime ? minuteOf(value) : value
  const [text, setText] = useState(shown)
  function commit(event: Event): void {
    event.preventDefault()
    // What was not typed over stays as it was given, with seconds and an offset perhaps.
    if (text === shown) return
    const time = `${text}Z`
    if (!isTime || text === '') ask({ [name]: text.trim() })
    else if (!Number.isNaN(Date.parse(time))) ask({ [name]: new Date(time).toISOString() })
  }
  return (
    <form class="field" onSubmit={commit} onFocusOut={commit}>
      <TextField
        label={wordOf(name)}
        value={text}
        onChange={setText}
        type={isTime ? 'datetime-local' : NUMBERS.includes(name) ? 'number' : 'search'}
        maxLength={320}
      />
    </form>
  )
}

function TagFilter({ ask }: { readonly ask: (changes: Search) => void }) {
  const [key, setKey] = useState('')
  const [value, setValue] = useState('')
  const add = (event: Event) => {
    event.preventDefault()
    if (key.trim() === '' || value === '') return
    ask({ [`tag.${key.trim()}`]: value })
    setKey('')
    setValue('')
  }
  return (
    <form class="row end" onSubmit={add}>
      <TextField label="Key of the tag" value={key} onChange={setKey} maxLength={100} />
      <TextField label="Its value" value={value} onChange={setValue} maxLength={256} />
      <button type="submit">Add</button>
    </form>
  )
}

function Chosen({ search, ask }: FiltersProps) {
  const chosen = Object.entries(search)
  if (chosen.length === 0) return null
  return (
    <ul class="row plain-list" aria-label="Filters that are set">
      {chosen.map(([name, value]) => (
        <li key={name} class="chip" data-kind="new">
          {wordOf(name)}: {value}
          <button type="button" class="plain" aria-label={`Remove ${wordOf(name)}`} onClick={() => ask({ [name]: '' })}>
            ×
          </button>
        </li>
      ))}
      <li>
        <button type="button" class="plain" onClick={() => ask(Object.fromEntries(chosen.map(([name]) => [name, ''])))}>
          Clear all
        </button>
      </li>
    </ul>
  )
}
