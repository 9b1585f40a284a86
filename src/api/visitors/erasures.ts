// /v1/erasures: how far the erasure of a visitor has come.

import { ApiError } from '../../domain/errors.ts'
import { isoTime } from '../../events/present.ts'
import type { ReadErasure } from '../../reads/erasures.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { ERASURE_DOCS } from './erasures-docs.ts'

export function erasureRoutes(erasure: ReadErasure): ApiRoute[] {
  return [
    keyed({
      method: 'GET',
      path: '/v1/erasures/:erasureId',
      access: 'visitors:delete',
      doc: ERASURE_DOCS.one,
      async handle({ caller, params }) {
        const erasureId = params.erasureId ?? ''
        const found = /^era_[0-9A-Za-z]{20}$/.test(erasureId)
          ? await erasure(caller.workspace.id, caller.env, erasureId)
          : null
        if (found === null) throw new ApiError('not_found')
        const { requestedAt, stores } = found
        const status = stores.every((store) => store.status === 'done') ? 'done' : 'in_progress'
        const shown = stores.map(({ store, status, expectedBy }) => ({
          store,
          status,
          expectedBy: expectedBy === null ? null : isoTime(expectedBy),
        }))
        return { body: { erasureId, status, requestedAt: isoTime(requestedAt), stores: shown } }
      },
    }),
  ]
}
