// Long answers of the API, compressed beside the thread that serves them and while they are made (decisions, HTTP).

import { pipeline, Readable } from 'node:stream'
import { constants, createBrotliCompress, createGzip } from 'node:zlib'
import type { HttpResponse } from '../http/message.ts'
import { type Coding, codingFor, VARIES } from './coding.ts'

/** What is shorter leaves as it is, in one piece. */
export const COMPRESSED_BYTES_MIN = 16_384
/** Quick rather than small: each is made for one client. */
const compressors = {
  br: () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: () => createGzip({ level: 4 }),
} satisfies Record<Coding, unknown>

type Parts = AsyncGenerator<string | Uint8Array, void>

const isLong = ({ body, parts }: HttpResponse): boolean =>
  parts !== undefined || (body !== undefined && Buffer.byteLength(body) > COMPRESSED_BYTES_MIN)

async function* whole({ body, parts }: HttpResponse): Parts {
  if (body !== undefined) yield body
  if (parts !== undefined) yield* parts
}

async function* compressing(source: Parts, coding: Coding): Parts {
  const compressor = compressors[coding]()
  // Whatever fails, or nobody waits for any more, ends both of them; a failure comes out where the chunks do.
  pipeline(Readable.from(source, { highWaterMark: 1 }), compressor, () => {})
  for await (const chunk of compressor) yield chunk as Buffer
}

/** The answer as it is, or in the coding that `accepted`, an Accept-Encoding, prefers. */
export async function compressed(response: HttpResponse, accepted: string): Promise<HttpResponse> {
  if (!isLong(response)) return response
  const headers = [...(response.headers ?? []), VARIES]
  const coding = codingFor(accepted, () => true)
  if (coding === null) return { ...response, headers }
  const parts = compressing(whole(response), coding)
  const { value: body = '' } = await parts.next()
  return { ...response, headers: [...headers, ['Content-Encoding', coding]], body: body as string | Uint8Array, parts }
}
