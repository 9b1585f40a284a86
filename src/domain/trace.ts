// W3C Trace Context: what a caller's `traceparent` says, and what is passed on of it.

import { hash } from 'node:crypto'

export const TRACEPARENT = 'traceparent'

/** Version, trace id, span id, flags; versions to come may have more behind that. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const HEADER_CHARS_MAX = 512
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
const SPAN_CHARS = 16

export interface Trace {
  /** 32 hexadecimal digits. */
  readonly id: string
  /** 2 hexadecimal digits, as they came. */
  readonly flags: string
}

/** null: there is no header, or one that must be ignored (W3C Trace Context, 3.2). */
export function readTraceparent(text: string): Trace | null {
  if (text === '' || text.length > HEADER_CHARS_MAX) return null
  const [, version, id, span, flags, more] = FORM.exec(text) ?? []
  if (version === undefined || id === undefined || flags === undefined) return null
  if (version === 'ff' || (version === '00' && more !== undefined) || id === NO_TRACE || span === NO_SPAN) return null
  return { id, flags }
}

/** A trace in one text: as it is kept of an identification until the last webhook was told. */
export const packTrace = ({ id, flags }: Trace): string => `${id}-${flags}`

/** `traceparent` of the call that `span` names: the same name is the same span, in every trace one of its own. */
export function traceparentOf(packed: string, span: string): string {
  const [id = '', flags = '00'] = packed.split('-')
  return `00-${id}-${hash('sha256', `${id}/${span}`, 'hex').slice(0, SPAN_CHARS)}-${flags}`
}
