// The frame around every page of the documentation: head, search, navigation, and the policy that allows nothing but our own files.

import { escapeHtml } from './html.ts'
import type { DocPage, Group } from './page.ts'

export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const MARK =
  '<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8"/><path d="M14 6h3v20h-3zM8 9h14l4 3.5-4 3.5H8z"/></svg>'
// Without the script there is no search, and everything is reached by links.
const SEARCH = `<form class="search" role="search" hidden><label class="unseen" for="search">Search the documentation</label>
<input id="search" type="search" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="100" placeholder="Search">
<kbd aria-hidden="true">/</kbd><div id="found" class="found" role="listbox" aria-label="Found" hidden></div><p id="count" class="said unseen" role="status"></p></form>`

export interface PageFrame {
  readonly title: string
  readonly version: string
  readonly groups: readonly Group[]
}

/** The whole document. */
export function framed(page: DocPage, frame: PageFrame): string {
  const isStart = page.path === '/docs'
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="description" content="${escapeHtml(page.summary)}">
<title>${escapeHtml(isStart ? page.title : `${page.title} · ${frame.title}`)}</title>
<link rel="icon" href="/docs/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="/docs/docs.css"><script type="module" src="/docs/docs.js"></script></head>
<body><a class="skip" href="#main">Skip to the content</a>
<header class="top"><a class="brand" href="/docs">${MARK}<span>${escapeHtml(frame.title)}</span></a>${SEARCH}<a class="menu" href="#contents">Contents</a></header>
<nav id="contents" aria-label="Contents"><a class="close" href="#main">Close</a><ul class="groups">${frame.groups.map((group) => groupHtml(group, page)).join('')}</ul>
<p class="files"><a href="/openapi.json">OpenAPI 3.1</a> <a href="/postman.json">Postman</a> <span>API ${escapeHtml(frame.version)}</span></p></nav>
<main id="main"><h1>${escapeHtml(page.title)}</h1>${page.html()}${neighbours(page, frame.groups)}</main></body></html>
`
}

function groupHtml({ title, pages }: Group, current: DocPage): string {
  const links = pages.map((page) => {
    const isCurrent = page === current
    const within = page.sections.map(({ id, label }) => `<li><a href="#${id}">${label}</a></li>`)
    return `<li><a href="${page.path}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(page.title)}</a>${
      isCurrent && within.length > 0 ? `<ul class="within">${within.join('')}</ul>` : ''
    }</li>`
  })
  return `<li><p class="group">${escapeHtml(title)}</p><ul>${links.join('')}</ul></li>`
}

/** Links to the page before and the one behind, of those that are read in order. */
function neighbours(page: DocPage, groups: readonly Group[]): string {
  const pages = groups.find((group) => group.pages.includes(page))?.pages ?? []
  const at = pages.indexOf(page)
  const link = (to: DocPage | undefined, name: string, className: string) =>
    to === undefined ? '' : `<a class="${className}" href="${to.path}"><span>${name}</span> ${escapeHtml(to.title)}</a>`
  const links = `${link(pages[at - 1], 'Before', 'before')}${link(pages[at + 1], 'Next', 'next')}`
  return links === '' ? '' : `<footer class="neighbours">${links}</footer>`
}
