// JSON in slices: what is long is written step by step, and the first bytes leave before the last ones are made.

import type { HttpResponse } from '../http/message.ts'
import type { PacedSteps } from './paced-steps.ts'

const SLICE_CHARS = 65_536

/** JSON that is written already. */
export class Written {
  readonly json: string
  constructor(json: string) {
    this.json = json
  }
}

/** The same texts, none longer than a slice. */
function* cut(texts: Iterable<string>): Generator<string> {
  for (const text of texts) {
    if (text.length <= SLICE_CHARS) yield text
    else {
      for (let at = 0; at < text.length; ) {
        let end = Math.min(text.length, at + SLICE_CHARS)
        // Both halves of a character leave together: each slice is encoded by itself.
        if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++
        yield text.slice(at, end)
        at = end
      }
    }
  }
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00

/** The parts of `value` as JSON, in order: each member of an object, and each item of a member that is a list. */
function* partsOf(value: unknown): Generator<string> {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Written) {
    yield textOf(value) ?? 'null'
    return
  }
  let isFirst = true
  for (const [name, member] of Object.entries(value)) {
    const isList = Array.isArray(member)
    const text = isList ? '[' : textOf(member)
    if (text === undefined) continue
    yield `${isFirst ? '{' : ','}${JSON.stringify(name)}:${text}`
    isFirst = false
    if (!isList) continue
    for (let i = 0; i < member.length; i++) yield `${i === 0 ? '' : ','}${textOf(member[i]) ?? 'null'}`
    yield ']'
  }
  yield isFirst ? '{}' : '}'
}

const textOf = (value: unknown): string | undefined => (value instanceof Written ? value.json : JSON.stringify(value))

/** As much as makes a slice; `isOver`: there is no more. */
function sliceOf(parts: Iterator<string, unknown>): { readonly text: string; readonly isOver: boolean } {
  let text = ''
  while (text.length < SLICE_CHARS) {
    const { value, done } = parts.next()
    if (done === true) return { text, isOver: true }
    text += value
  }
  return { text, isOver: false }
}

/** The whole text as `body` when that is short, else its first slice, and those that follow as `parts`. */
export function inSlices(value: unknown, turns: PacedSteps): Pick<HttpResponse, 'body' | 'parts'> {
  const parts = cut(partsOf(value))
  const { text, isOver } = turns.atOnce(() => sliceOf(parts))
  return isOver ? { body: text } : { body: text, parts: restOf(parts, turns) }
}

async function* restOf(parts: Iterator<string, unknown>, turns: PacedSteps): AsyncGenerator<string, void> {
  for (;;) {
    const { text, isOver } = await turns.take(() => sliceOf(parts))
    yield text
    if (isOver) return
  }
}
