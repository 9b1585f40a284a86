// What the search of the documentation looks through: titles, headings, endpoints and names of fields, as one JSON text.

import type { DocPage } from './page.ts'

/** `[kind, title, detail, address, names parted by spaces]`, as `src/sdk/docs/search.ts` reads it. */
type Entry = readonly [kind: string, title: string, detail: string, address: string, names: string]

export function searchIndex(pages: readonly DocPage[]): string {
  const entries = pages.flatMap((page) =>
    page
      .found()
      .map(
        ({ kind, title, detail, anchor, names }): Entry => [
          kind,
          title,
          detail,
          anchor === '' ? page.path : `${page.path}#${anchor}`,
          [...new Set(names)].join(' '),
        ],
      ),
  )
  return JSON.stringify(entries)
}
