// The description of the API as texts: OpenAPI, a Postman collection, a page. Each is made once, when it is first asked for.

import { createHash } from 'node:crypto'
import type { HttpHeader, HttpResponse } from '../../http/message.ts'
import { openApiDocument } from './document.ts'
import { type DescribedRow, OUTSIDE_ROWS } from './outside.ts'
import { PAGE_POLICY, referencePage } from './page.ts'
import { postmanCollection } from './postman.ts'

const HEADERS: readonly HttpHeader[] = [
  ['Cache-Control', 'no-cache'],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
]

interface Text {
  readonly make: () => string
  readonly contentType?: string
  readonly headers?: readonly HttpHeader[]
}

interface Answers {
  readonly etag: string
  readonly full: HttpResponse
  readonly unchanged: HttpResponse
}

function once<T>(make: () => T): () => T {
  let made: { readonly it: T } | null = null
  return () => {
    made ??= { it: make() }
    return made.it
  }
}

export type ReferencePath = '/openapi.json' | '/postman.json' | '/docs'

/** What is answered on each path. `rows` is the route table; what is served outside of it is added here. */
export function openReferenceTexts(
  rows: readonly DescribedRow[],
  version: string,
): Record<ReferencePath, () => Answers> {
  const document = once(() => openApiDocument([...OUTSIDE_ROWS, ...rows], version))
  const answers = ({ make, headers: own = [], ...type }: Text) =>
    once(() => {
      const body = make()
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
      const headers: HttpHeader[] = [...HEADERS, ['ETag', etag], ...own]
      return { etag, full: { status: 200, headers, body, ...type }, unchanged: { status: 304, headers } }
    })
  return {
    '/openapi.json': answers({ make: () => JSON.stringify(document()) }),
    '/postman.json': answers({ make: () => JSON.stringify(postmanCollection(document())) }),
    '/docs': answers({
      make: () => referencePage(document()),
      contentType: 'text/html; charset=utf-8',
      headers: [['Content-Security-Policy', PAGE_POLICY]],
    }),
  }
}
