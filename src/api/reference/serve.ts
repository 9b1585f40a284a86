// Serves the description of the API: as OpenAPI, as a Postman collection, and as a page. What makes them is loaded when one is first
// asked for: most processes never are, and it would lengthen every start.

import type { HttpRequest } from '../../http/message.ts'
import type { Http } from '../../http/server.ts'
import type { DescribedRow } from './outside.ts'
import type { ReferencePath } from './texts.ts'

const PATHS: readonly ReferencePath[] = ['/openapi.json', '/postman.json', '/docs']

/** `rows` is the route table. */
export function serveReference(http: Pick<Http, 'route'>, rows: readonly DescribedRow[], version: string): void {
  const load = async () => (await import('./texts.ts')).openReferenceTexts(rows, version)
  let loaded: ReturnType<typeof load> | null = null
  for (const path of PATHS) {
    const answer = async (request: HttpRequest) => {
      loaded ??= load()
      const { etag, full, unchanged } = (await loaded)[path]()
      return request.header('if-none-match') === etag ? unchanged : full
    }
    http.route('GET', path, answer, { headers: ['if-none-match'] })
  }
}
