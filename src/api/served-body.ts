// A body that browsers ask for again and again: kept in the codings they take, and not sent to those who have it.

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { HttpHeader, HttpRequest, HttpResponse } from '../http/message.ts'
import { ACCEPT_ENCODING, type Coding, codingFor, VARIES } from './coding.ts'

const COMPRESSED_BYTES_MIN = 1_024
const compressors = {
  br: (body: Uint8Array) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (body: Uint8Array) => promisify(gzip)(body, { level: 9 }),
} satisfies Record<Coding, unknown>

/** What a route with such a body has to capture. */
export const SERVED_BODY_HEADERS: readonly string[] = ['if-none-match', ACCEPT_ENCODING]

export interface ServedBody {
  /** 200 in the best coding there is, or 304. */
  answer(request: HttpRequest): HttpResponse
  /** Until it resolves the body is sent as it is. */
  readonly compressed: Promise<void>
}

export interface Body {
  readonly contentType: string
  /** Besides `ETag`, `Vary` and `Content-Encoding`. */
  readonly headers: readonly HttpHeader[]
  readonly body: Uint8Array
}

export const hashOf = (body: Uint8Array): string => createHash('sha256').update(body).digest('base64url')

async function compress(body: Uint8Array, into: Map<Coding, Uint8Array>): Promise<void> {
  if (body.length < COMPRESSED_BYTES_MIN) return
  for (const coding of ['br', 'gzip'] as const) into.set(coding, await compressors[coding](body))
}

/** Compresses beside whatever goes on. */
export function openServedBody({ contentType, headers, body }: Body): ServedBody {
  const codings = new Map<Coding, Uint8Array>()
  const etag = hashOf(body).slice(0, 22)
  return {
    answer(request) {
      const coding = codingFor(request.header(ACCEPT_ENCODING), (one) => codings.has(one))
      const tag = `"${etag}${coding === null ? '' : `-${coding}`}"`
      const own: HttpHeader[] = [...headers, VARIES, ['ETag', tag]]
      if (request.header('if-none-match') === tag) return { status: 304, headers: own }
      if (coding === null) return { status: 200, headers: own, contentType, body }
      const whole = codings.get(coding) as Uint8Array
      return { status: 200, headers: [...own, ['Content-Encoding', coding]], contentType, body: whole }
    },
    compressed: compress(body, codings),
  }
}
