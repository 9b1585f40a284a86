// The guides as pages: made of Markdown by the build, read once, and tied to the endpoints that they name.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { endpointsOf, type OpenApiDocument } from '../openapi.ts'
import { escapeHtml } from './html.ts'
import { type DocPage, endpointAddress, PATHS, type SearchEntry } from './page.ts'

/** What the build writes of a guide (`.scripts/build-docs.mjs`). */
interface Guide {
  readonly name: string
  readonly title: string
  /** A sentence as text. */
  readonly summary: string
  readonly html: string
  /** The text before the first heading has an anchor of ''. */
  readonly headings: readonly {
    readonly id: string
    readonly text: string
    readonly level: number
    readonly names: readonly string[]
  }[]
}

/** In the order of the index. Throws when the build is not complete. */
export function guidePages(document: OpenApiDocument, dir: string): DocPage[] {
  const guides: readonly Guide[] = JSON.parse(readFileSync(join(dir, 'guides.json'), 'utf8'))
  const link = linkerOf(document)
  return guides.map((guide) => ({
    path: `/docs/guides/${guide.name}`,
    title: guide.title,
    summary: guide.summary,
    sections: guide.headings
      .filter(({ level }) => level === 2)
      .map(({ id, text }) => ({ id, label: escapeHtml(text) })),
    found: () => foundIn(guide),
    html: () => `<div class="guide">${link(guide.html)}</div>`,
  }))
}

const foundIn = ({ title, summary, headings }: Guide): SearchEntry[] =>
  headings.map(({ id, text, names }) => ({
    kind: 'Guide',
    title: id === '' ? title : text,
    detail: id === '' ? summary : title,
    anchor: id,
    names,
  }))

const ENDPOINT = /<(h\d|a)\b[^>]*>[\s\S]*?<\/\1>|<code>([A-Z]+) (\/[\w/{}.-]+)<\/code>|<code>(\/[\w/{}.-]+)<\/code>/g
const nameless = (path: string): string => path.replaceAll(/\{\w+\}/g, '{}')

/** Makes links of the endpoints that a text names in code, outside of headings and links. */
function linkerOf(document: OpenApiDocument): (html: string) => string {
  const addresses = new Map<string, string>()
  for (const { method, path, operation } of endpointsOf(document)) {
    addresses.set(`${method} ${nameless(path)}`, endpointAddress(operation))
    if (method === 'GET') addresses.set(nameless(path), endpointAddress(operation))
  }
  for (const path of [...Object.values(PATHS), '/openapi.json', '/postman.json']) addresses.set(path, path)
  return (html) =>
    html.replaceAll(ENDPOINT, (whole, _, method?: string, path?: string, page?: string) => {
      const address = addresses.get(page === undefined ? `${method} ${nameless(path ?? '')}` : nameless(page))
      return address === undefined ? whole : `<a href="${address}">${whole}</a>`
    })
}
