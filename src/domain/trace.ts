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
  /** 16 hexadecimal digits: the caller's. */
  readonly span: string
  /** 2 hexadecimal digits, as they came. */
  readonly flags: string
}

/** null: there is no header, or one that must be ignored (W3C Trace Context, 3.2). */
export function readTraceparent(text: string): Trace | null {
  if (text === '' || text.length > HEADER_CHARS_MAX) return null
  const [, version, id, span, flags, more] = FORM.exec(text) ?? []
  if (version === undefined || id === undefined || span === undefined || flags === undefined) return null
  if (version === 'ff' || (version === '00' && more !== undefined) || id === NO_TRACE || span === NO_SPAN) return null
  return { id, span, flags }
}

export const traceparentText = (id: string, span: string, flags: string): string => `00-${id}-${span}-${flags}`

/** A trace in one text: as it is kept of an identification until the last webhook was told. */
export const packTrace = ({ id, span, flags }: Trace): string => `${id}-${span}-${flags}`

export function readTrace(packed: string): Trace {
  const [id = NO_TRACE, span = NO_SPAN, flags = '00'] = packed.split('-')
  return { id, span, flags }
}

/** `traceparent` of a call that `name` tells apart: the same name is the same span, in every trace one of its own. */
export function traceparentOf(packed: string, name: string): string {
  const { id, flags } = readTrace(packed)
  return traceparentText(id, hash('sha256', `${id}/${name}`, 'hex').slice(0, SPAN_CHARS), flags)
}
