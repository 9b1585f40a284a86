// Serves the description of the API: as OpenAPI, as a Postman collection, and as a page. Made once, when it is first asked for:
// most processes never are, and it would lengthen every start.

import { createHash } from 'node:crypto'
import type { Header, HttpRequest } from '../../http/message.ts'
import type { Http } from '../../http/server.ts'
import { type DescribedRow, OUTSIDE_ROWS } from '../answers/outside.ts'
import { openApiDocument } from './document.ts'
import { PAGE_POLICY, referencePage } from './page.ts'
import { postmanCollection } from './postman.ts'

const HEADERS: readonly Header[] = [
  ['Cache-Control', 'no-cache'],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
]

interface File {
  readonly path: string
  readonly make: () => string
  readonly contentType?: string
  readonly headers?: readonly Header[]
}

function once<T>(make: () => T): () => T {
  let made: { readonly it: T } | null = null
  return () => {
    made ??= { it: make() }
    return made.it
  }
}

/** `rows` is the route table; what is served outside of it is added here. */
export function serveReference(http: Pick<Http, 'route'>, rows: readonly DescribedRow[], version: string): void {
  const document = once(() => openApiDocument([...OUTSIDE_ROWS, ...rows], version))
  const files: readonly File[] = [
    { path: '/openapi.json', make: () => JSON.stringify(document()) },
    { path: '/postman.json', make: () => JSON.stringify(postmanCollection(document())) },
    {
      path: '/docs',
      make: () => referencePage(document()),
      contentType: 'text/html; charset=utf-8',
      headers: [['Content-Security-Policy', PAGE_POLICY]],
    },
  ]
  for (const { path, make, headers: own = [], ...type } of files) {
    const answers = once(() => {
      const body = make()
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
      const headers: Header[] = [...HEADERS, ['ETag', etag], ...own]
      return { etag, full: { status: 200, headers, body, ...type }, unchanged: { status: 304, headers } }
    })
    const answer = (request: HttpRequest) => {
      const { etag, full, unchanged } = answers()
      return request.header('if-none-match') === etag ? unchanged : full
    }
    http.route('GET', path, answer, { headers: ['if-none-match'] })
  }
}
