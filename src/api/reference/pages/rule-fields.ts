// What a rule can ask about, as a page.

import { PRESENTED_FIELDS } from '../../rules/present.ts'
import { anchor, escapeHtml, inline, table } from './html.ts'
import { PATHS, type Page } from './page.ts'

type Field = (typeof PRESENTED_FIELDS)[number]

const anchorOf = ({ path }: Field): string => `field-${anchor(path)}`
const noteOf = (field: Field): string => ('note' in field && field.note !== undefined ? field.note : '')

export function ruleFieldsPage(): Page {
  const title = 'Rule fields'
  const summary = 'What the conditions of a rule can ask about, with type and operators.'
  const rows = PRESENTED_FIELDS.map((field) => {
    const { path, type, label, operators } = field
    const note = noteOf(field)
    return `<tr id="${anchorOf(field)}"><td><code>${escapeHtml(path)}</code></td><td>${escapeHtml(type)}</td><td>${escapeHtml(label)}${
      note === '' ? '' : `<p class="bounds">${inline(note)}</p>`
    }</td><td class="operators">${operators.map((operator) => `<code>${escapeHtml(operator)}</code>`).join(' ')}</td></tr>`
  })
  return {
    path: PATHS.fields,
    title,
    summary,
    sections: [],
    found: () => [
      { kind: 'Reference', title, detail: summary, anchor: '', names: [] },
      ...PRESENTED_FIELDS.map((field) => ({
        kind: 'Rule field',
        title: field.path,
        detail: field.label,
        anchor: anchorOf(field),
        names: [],
      })),
    ],
    html: () =>
      `<p class="lead">${inline(`${summary} A field that is missing or null makes every operator false, except \`exists\` with \`false\`.`)}</p>${table(['Field', 'Type', 'Means', 'Operators'], rows)}`,
  }
}
