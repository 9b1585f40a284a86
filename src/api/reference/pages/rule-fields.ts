// What a rule can ask about, as a page.

import { PRESENTED_FIELDS } from '../../rules/present.ts'
import { anchor, escapeHtml, inline } from './html.ts'
import { type DocPage, PATHS } from './page.ts'

type Field = (typeof PRESENTED_FIELDS)[number]

const anchorOf = ({ path }: Field): string => `field-${anchor(path)}`
const categoryAnchor = (category: string): string => `category-${anchor(category)}`
const titleOf = (category: string): string =>
  category === 'ip' ? 'Address' : `${category.slice(0, 1).toUpperCase()}${category.slice(1)}`

export function ruleFieldsPage(): DocPage {
  const title = 'Rule fields'
  const summary = 'What the conditions of a rule can ask about, with type and operators.'
  const categories = [...new Set(PRESENTED_FIELDS.map(({ category }) => category))]
  return {
    path: PATHS.fields,
    title,
    summary,
    sections: categories.map((category) => ({ id: categoryAnchor(category), label: escapeHtml(titleOf(category)) })),
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
      `<p class="lead">${inline(`${summary} A field that is missing or null makes every operator false, except \`exists\` with \`false\`.`)}</p>${categories
        .map((category) => {
          const rows = PRESENTED_FIELDS.filter((field) => field.category === category).map(row)
          const id = categoryAnchor(category)
          return `<section class="part" id="${id}"><h2><a href="#${id}">${escapeHtml(titleOf(category))}</a></h2><dl class="members">${rows.join('')}</dl></section>`
        })
        .join('')}`,
  }
}

function row(field: Field): string {
  const { path, type, label, operators } = field
  const note = 'note' in field && field.note !== undefined ? `<p>${inline(field.note)}</p>` : ''
  const shown = operators.map((operator) => `<code>${escapeHtml(operator)}</code>`).join(' ')
  return `<div class="member" id="${anchorOf(field)}"><dt><code>${escapeHtml(path)}</code> <span class="kind">${escapeHtml(type)}</span> ${escapeHtml(label)}</dt><dd>${note}<p class="bounds">${shown}</p></dd></div>`
}
