// Reading untrusted JSON: each reader takes any value and gives a bounded one of its type, or null.

import type { IdentifyBody } from '../domain/identify.ts'

export type Json = Readonly<Record<string, unknown>>

export const objectOf = (value: unknown): Json | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : null

/** The value of a component, undefined when it is absent, an error entry or not of a component's shape. */
export function componentOf(components: IdentifyBody['components'], name: string): unknown {
  if (typeof components !== 'object' || components === null) return undefined
  const entry: unknown = (components as Json)[name]
  return typeof entry === 'object' && entry !== null ? (entry as Json).value : undefined
}

/** The beginning of a text in memory of its own: what `slice` gives keeps all of the text alive for as long as it is remembered. */
const cut = (text: string, chars: number): string => Buffer.from(text.slice(0, chars), 'utf16le').toString('utf16le')

/** A text that is not empty, cut to `charsMax`. */
export function textOf(value: unknown, charsMax: number): string | null {
  if (typeof value !== 'string' || value === '') return null
  return value.length > charsMax ? cut(value, charsMax) : value
}

export const numberOf = (value: unknown, min: number, max: number): number | null =>
  typeof value === 'number' && value >= min && value <= max ? value : null

export const wholeOf = (value: unknown, min: number, max: number): number | null =>
  Number.isInteger(value) ? numberOf(value, min, max) : null

export const flagOf = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null)
