// Schemas as a reader wants them: members with type, bounds and meaning, nested ones folded below theirs.

import { nameOf, type Schema } from '../openapi.ts'
import { escapeHtml, inline } from './html.ts'
import { schemaAddress, schemaAnchor } from './page.ts'

/** Members nested deeper are not unfolded: what is shared has a place of its own. */
const OPEN_DEPTH = 1

const link = (name: string): string => `<a href="${schemaAddress(name)}">${escapeHtml(name)}</a>`

/** The kind of value in a few words, as HTML. */
export function kindOf(schema: Schema): string {
  const name = nameOf(schema)
  if (name !== null) return link(name)
  const { type, anyOf, items, format } = schema
  if (schema.const !== undefined) return `<code>${escapeHtml(JSON.stringify(schema.const))}</code>`
  if (anyOf !== undefined) return anyOf.map(kindOf).join(' or ')
  if (type === 'array') return items === undefined ? 'array' : `array of ${kindOf(items)}`
  if (format !== undefined) return escapeHtml(Array.isArray(type) ? `${format} or null` : format)
  if (type === undefined) return 'any value'
  return escapeHtml(typeof type === 'string' ? type : type.join(' or '))
}

/** What the value must keep to, as phrases of HTML. */
export function boundsOf(schema: Schema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = schema
  const bounds: string[] = []
  if (schema.enum !== undefined) {
    bounds.push(
      schema.enum.map((value) => `<code>${escapeHtml(value === null ? 'null' : String(value))}</code>`).join(' '),
    )
  }
  if (minimum !== undefined && maximum !== undefined) bounds.push(`${number(minimum)} to ${number(maximum)}`)
  else if (minimum !== undefined) bounds.push(`at least ${number(minimum)}`)
  else if (maximum !== undefined) bounds.push(`at most ${number(maximum)}`)
  if (maxLength !== undefined)
    bounds.push(`${minLength ? `${minLength} to ` : 'at most '}${number(maxLength)} characters`)
  if (maxItems !== undefined) bounds.push(`${minItems ? `${minItems} to ` : 'at most '}${number(maxItems)} items`)
  if (pattern !== undefined) bounds.push(`matches <code>${escapeHtml(pattern)}</code>`)
  if (schema.default !== undefined) bounds.push(`default <code>${escapeHtml(JSON.stringify(schema.default))}</code>`)
  return bounds
}

const number = (value: number): string => (Math.abs(value) >= 10_000 ? value.toLocaleString('en') : String(value))

/** One row: a parameter, a header or a member. */
export function memberRow(name: string, schema: Schema, required: boolean, nested = '', description?: string): string {
  const words = description ?? schema.description
  const bounds = boundsOf(schema)
  return `<div class="member"><dt><code>${escapeHtml(name)}</code> <span class="kind">${kindOf(schema)}</span>${
    required ? ' <span class="required">required</span>' : ''
  }</dt><dd>${words === undefined ? '' : `<p>${inline(words)}</p>`}${
    bounds.length === 0 ? '' : `<p class="bounds">${bounds.join(' · ')}</p>`
  }${nested}</dd></div>`
}

/** The schema whose members are worth showing: the object itself, the items of an array, the one alternative that is not null. */
function inner(schema: Schema): Schema | null {
  if (nameOf(schema) !== null) return null
  if (schema.properties !== undefined) return schema
  if (schema.items !== undefined) return inner(schema.items)
  const others = schema.anyOf?.filter(({ type }) => type !== 'null') ?? []
  return others.length === 1 && others[0] !== undefined ? inner(others[0]) : null
}

/** All members of an object, those of nested objects below. '' for what has none. */
export function schemaMembers(schema: Schema, depth = 0): string {
  const shown = inner(schema)
  if (shown === null) {
    const alternatives = schema.anyOf?.map(inner).filter((one) => one !== null) ?? []
    return alternatives.map((one) => `<div class="either">${schemaMembers(one, depth)}</div>`).join('')
  }
  const rows = Object.entries(shown.properties ?? {}).map(([name, member]) => {
    const within = schemaMembers(member, depth + 1)
    const nested =
      within === ''
        ? ''
        : `<details${depth + 1 < OPEN_DEPTH ? ' open' : ''}><summary>Members of <code>${escapeHtml(name)}</code></summary>${within}</details>`
    return memberRow(name, member, shown.required?.includes(name) ?? false, nested)
  })
  return rows.length === 0 ? '' : `<dl class="members">${rows.join('')}</dl>`
}

/** Of its members at every depth, up to those that have a name of their own. */
export function memberNames(schema: Schema): string[] {
  const shown = inner(schema)
  if (shown === null) return (schema.anyOf ?? []).map(inner).flatMap((one) => (one === null ? [] : memberNames(one)))
  return Object.entries(shown.properties ?? {}).flatMap(([name, member]) => [name, ...memberNames(member)])
}

/** A schema under its own heading. */
export function schemaSection(name: string, schema: Schema): string {
  const body = schemaMembers(schema)
  return `<section class="schema" id="${schemaAnchor(name)}"><h2><a href="#${schemaAnchor(name)}">${escapeHtml(name)}</a></h2>${
    schema.description === undefined ? '' : `<p>${inline(schema.description)}</p>`
  }${body === '' ? `<p>${kindOf(schema)} ${boundsOf(schema).join(' · ')}</p>` : body}</section>`
}
