// Serves the description of the API: as OpenAPI, as a Postman collection, and with the guides as pages. What makes them is loaded when
// one is first asked for: most processes never are, and it would lengthen every start.

import { ApiError } from '../../domain/errors.ts'
import type { HttpRequest } from '../../http/message.ts'
import type { Http } from '../../http/server.ts'
import { SERVED_BODY_HEADERS } from '../served-body.ts'
import type { DescribedRow } from './outside.ts'

const PATHS: readonly string[] = ['/openapi.json', '/postman.json', '/docs', '/docs/*']

export interface ReferenceNeeds {
  /** The route table. */
  readonly rows: readonly DescribedRow[]
  readonly version: string
  /** What the build made of the guides. */
  readonly dir: string
}

/** A page that there is not is `route_not_found`, as every other path. */
export function serveReference(http: Pick<Http, 'route'>, { rows, version, dir }: ReferenceNeeds): void {
  const load = async () => (await import('./texts.ts')).openReferenceTexts(rows, version, dir)
  let loaded: ReturnType<typeof load> | null = null
  const answer = async (request: HttpRequest) => {
    loaded ??= load()
    const served = (await loaded)(request.path === '/docs/' ? '/docs' : request.path)
    if (served === null) throw new ApiError('route_not_found')
    return served.answer(request)
  }
  for (const path of PATHS) http.route('GET', path, answer, { headers: SERVED_BODY_HEADERS })
}
