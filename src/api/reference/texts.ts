// The description of the API as texts: OpenAPI, a Postman collection, the pages. Each is made once, when it is first asked for.

import type { HttpHeader } from '../../http/message.ts'
import { openServedBody, type ServedBody } from '../served-body.ts'
import { openApiDocument } from './document.ts'
import { type DescribedRow, OUTSIDE_ROWS } from './outside.ts'
import { openSite } from './pages/site.ts'
import { postmanCollection } from './postman.ts'
import type { Text } from './text.ts'

const HEADERS: readonly HttpHeader[] = [
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
]

/**
 * What is answered on each path; null where nothing is. `rows` is the route table; what is served outside of it is added here. `dir` is
 * where the build left guides, script and style.
 */
export function openReferenceTexts(
  rows: readonly DescribedRow[],
  version: string,
  dir: string,
): (path: string) => ServedBody | null {
  const document = openApiDocument([...OUTSIDE_ROWS, ...rows], version)
  const texts = new Map<string, Text>([
    ['/openapi.json', { make: () => JSON.stringify(document) }],
    ['/postman.json', { make: () => JSON.stringify(postmanCollection(document)) }],
    ...openSite(document, dir),
  ])
  const made = new Map<string, ServedBody>()
  return (path) => {
    const known = made.get(path)
    if (known !== undefined) return known
    const text = texts.get(path)
    if (text === undefined) return null
    const { make, contentType = 'application/json', cacheControl = 'no-cache', headers = [] } = text
    const served = openServedBody({
      contentType,
      headers: [...HEADERS, ['Cache-Control', cacheControl], ...headers],
      body: Buffer.from(make()),
    })
    // What cannot be compressed is sent as it is.
    served.compressed.catch(() => undefined)
    made.set(path, served)
    return served
  }
}
