// The page that everything starts from: what Fingerpost is, the guides, the resources.

import type { OpenApiDocument } from '../openapi.ts'
import { escapeHtml, inline } from './html.ts'
import { type DocPage, type Group, PATHS } from './page.ts'

/** `groups` are all others. */
export function startPage({ info }: OpenApiDocument, groups: readonly Group[]): DocPage {
  const [summary = ''] = info.description.split('\n\n')
  const title = `${info.title} documentation`
  return {
    path: PATHS.start,
    title,
    summary,
    sections: [],
    found: () => [{ kind: 'Reference', title, detail: summary, anchor: '', names: [] }],
    html: () =>
      `<p class="lead">${inline(summary)}</p>${groups
        .map(({ title, pages }) => `<h2>${escapeHtml(title)}</h2><ul class="cards">${pages.map(card).join('')}</ul>`)
        .join('')}`,
  }
}

const card = ({ path, title, summary }: DocPage): string =>
  `<li><a href="${path}"><b>${escapeHtml(title)}</b> <span>${inline(summary)}</span></a></li>`
