// Message templates of side effects: `{{path}}` with a field of the registry, rule.id, rule.name or requestId. Rendered
// once, so that a value which looks like a template stays a value, and personal values are masked.

import type { Facts } from '../domain/event.ts'
import { maskIp } from '../domain/ip.ts'
import { type Field, field } from '../events/fields.ts'
import { isoTime, maskEmail } from '../events/present.ts'

const RENDERED_BYTES_MAX = 2_048

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g
const OWN_NAMES: readonly string[] = ['rule.id', 'rule.name', 'requestId']

/** The field paths a template names, without rule.id, rule.name and requestId. */
export function templatePaths(template: string): string[] {
  const names = Array.from(template.matchAll(PLACEHOLDER), (match) => (match[1] as string).trim())
  return names.filter((name) => !OWN_NAMES.includes(name))
}

function shown(of: Field, facts: Facts): string {
  const value = of.read(facts)
  if (value === null) return ''
  if (of.mask === 'ip') return maskIp(String(value))
  if (of.mask === 'email') return maskEmail(String(value))
  if (of.type === 'datetime') return isoTime(value as number)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** A value that cannot be shown (a moment beyond the calendar) must not cost the decision that the message is about. */
function safely(show: () => string): string {
  try {
    return show()
  } catch {
    return ''
  }
}

function cut(text: string): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= RENDERED_BYTES_MAX) return text
  let end = RENDERED_BYTES_MAX
  // Step back to the first byte of a character, so that none is cut in two.
  while (((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/**
 * Prepares a template for one rule. The returned function renders at most RENDERED_BYTES_MAX bytes of UTF-8; a missing
 * or unknown field, and a score when `scores` is false, renders as nothing.
 */
export function compileTemplate(
  template: string,
  rule: { readonly id: string; readonly name: string },
  options: { readonly scores: boolean },
): (facts: Facts) => string {
  // Splitting by a pattern with one group alternates literal text and placeholder names.
  const parts = template.split(PLACEHOLDER).map((part, i): string | ((facts: Facts) => string) => {
    if (i % 2 === 0) return part
    const name = part.trim()
    if (name === 'rule.id') return rule.id
    if (name === 'rule.name') return rule.name
    if (name === 'requestId') return (facts) => facts.requestId
    const found = field(name)
    if (found === null || (found.category === 'scores' && !options.scores)) return ''
    return (facts) => safely(() => shown(found, facts))
  })
  return (facts) => {
    let rendered = ''
    for (const part of parts) {
      rendered += typeof part === 'string' ? part : part(facts)
      if (rendered.length > RENDERED_BYTES_MAX) break
    }
    return cut(rendered)
  }
}
