// /v1/meta: which versions of the API there are, and which build answers.

import { API_VERSIONS } from '../domain/workspace.ts'
import { META_DOC } from './admin/docs.ts'
import { type ApiRoute, keyed } from './routes.ts'
import type { SdkFile } from './static.ts'

export interface Build {
  readonly version: string
  /** Whatever else tells one build from another. */
  readonly [name: string]: string | boolean
}

export const metaRoutes = (build: Build, sdk: SdkFile): ApiRoute[] => [
  keyed({
    method: 'GET',
    doc: META_DOC,
    path: '/v1/meta',
    access: 'any-key',
    handle: ({ caller }) => ({
      body: { apiVersion: caller.workspace.apiVersion, apiVersions: API_VERSIONS, build, sdk },
    }),
  }),
]
