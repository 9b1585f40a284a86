// Every page of the documentation by its path, with the files that the pages load.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenApiDocument } from '../openapi.ts'
import type { Text } from '../text.ts'
import { framed, PAGE_POLICY } from './frame.ts'
import { guidePages } from './guides.ts'
import type { Group } from './page.ts'
import { errorsPage, overviewPage, resourcePages, schemasPage, webhookEventsPage } from './reference.ts'
import { ruleFieldsPage } from './rule-fields.ts'
import { searchIndex } from './search.ts'
import { startPage } from './start.ts'

const FILES: Readonly<Record<string, string>> = {
  'docs.css': 'text/css; charset=utf-8',
  'docs.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

/** `dir` is where the build left guides, script and style. Throws when something is missing there. */
export function openSite(document: OpenApiDocument, dir: string): [path: string, text: Text][] {
  const groups: readonly Group[] = [
    { title: 'Guides', pages: guidePages(document, dir) },
    {
      title: 'Reference',
      pages: [
        overviewPage(document),
        errorsPage(),
        webhookEventsPage(document),
        ruleFieldsPage(),
        schemasPage(document),
      ],
    },
    { title: 'Resources', pages: resourcePages(document) },
  ]
  const start = startPage(document, groups)
  const { title, version } = document.info
  const pages = [start, ...groups.flatMap((group) => group.pages)]
  return [
    ...pages.map((page): [string, Text] => [
      page.path,
      {
        make: () => framed(page, { title, version, groups }),
        contentType: 'text/html; charset=utf-8',
        headers: [['Content-Security-Policy', PAGE_POLICY]],
      },
    ]),
    ['/docs/search.json', { make: () => searchIndex(pages) }],
    ...Object.entries(FILES).map(([name, contentType]): [string, Text] => [
      `/docs/${name}`,
      { make: () => readFileSync(join(dir, name), 'utf8'), contentType, cacheControl: 'public, max-age=300' },
    ]),
  ]
}
