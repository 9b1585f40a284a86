// A body that browsers ask for again and again: kept in the codings they take, and not sent to those who have it.

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { HttpHeader, HttpRequest, HttpResponse } from '../http/message.ts'

const COMPRESSED_BYTES_MIN = 1_024
const compressors = {
  br: (body: Uint8Array) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (body: Uint8Array) => promisify(gzip)(body, { level: 9 }),
} as const
type Coding = keyof typeof compressors

/** What a route with such a body has to capture. */
export const SERVED_BODY_HEADERS: readonly string[] = ['if-none-match', 'accept-encoding']

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

/** The coding to answer in, of those there are; null: as it is (RFC 9110, 12.5.3). */
function codingFor(accepted: string, there: ReadonlyMap<Coding, Uint8Array>): Coding | null {
  const takes = (coding: Coding) =>
    accepted.split(',').some((one) => {
      const [name = '', weight = ''] = one.split(';')
      return name.trim().toLowerCase() === coding && !/^\s*q\s*=\s*0(\.0*)?\s*$/.test(weight)
    })
  for (const coding of ['br', 'gzip'] as const) if (there.has(coding) && takes(coding)) return coding
  return null
}

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
      const coding = codingFor(request.header('accept-encoding'), codings)
      const tag = `"${etag}${coding === null ? '' : `-${coding}`}"`
      const own: HttpHeader[] = [...headers, ['Vary', 'Accept-Encoding'], ['ETag', tag]]
      if (request.header('if-none-match') === tag) return { status: 304, headers: own }
      if (coding === null) return { status: 200, headers: own, contentType, body }
      const whole = codings.get(coding) as Uint8Array
      return { status: 200, headers: [...own, ['Content-Encoding', coding]], contentType, body: whole }
    },
    compressed: compress(body, codings),
  }
}
