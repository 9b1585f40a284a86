// Fetching a file of IP data: conditional, bounded in size and time, over redirects that stay as safe as the address was.

import { isFetchable } from '../ipintel/sources.ts'

export interface DownloadOptions {
  /** Of what is there already: an unchanged file is not sent again. */
  readonly etag: string | null
  readonly lastModified: number | null
  readonly bytesMax: number
  readonly msMax: number
  /** Called with the bytes that came since the last call. */
  readonly onBytes: (bytes: number) => void
}

export interface Downloaded {
  /** null: not changed. */
  readonly content: Buffer | null
  readonly etag: string | null
  /** Milliseconds since the epoch, or null where the server does not say. */
  readonly lastModified: number | null
}

/** The file could not be fetched: the sentence says why. */
class DownloadFailed extends Error {
  override readonly name = 'DownloadFailed'
}

const REDIRECTS_MAX = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Throws DownloadFailed. */
export async function download(url: string, options: DownloadOptions): Promise<Downloaded> {
  const signal = AbortSignal.timeout(options.msMax)
  try {
    const response = await request(url, options, signal)
    const etag = response.headers.get('etag')
    const lastModified = moment(response.headers.get('last-modified'))
    if (response.status === 304) {
      return { content: null, etag: etag ?? options.etag, lastModified: lastModified ?? options.lastModified }
    }
    if (response.status !== 200) throw new DownloadFailed(`the server answered ${response.status}`)
    return { content: await readBody(response, options), etag, lastModified }
  } catch (error) {
    if (error instanceof DownloadFailed) throw error
    if (signal.aborted) throw new DownloadFailed(`it took longer than ${options.msMax} ms`)
    const { message, cause } = error as Error
    throw new DownloadFailed(cause instanceof Error ? `${message}: ${cause.message}` : message)
  }
}

async function request(url: string, options: DownloadOptions, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { 'user-agent': 'fingerpost' }
  if (options.etag !== null) headers['if-none-match'] = options.etag
  if (options.lastModified !== null) headers['if-modified-since'] = new Date(options.lastModified).toUTCString()
  let at = url
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const response = await fetch(at, { headers, signal, redirect: 'manual' })
    const next = response.headers.get('location')
    if (!REDIRECTS.has(response.status) || next === null) return response
    await response.body?.cancel()
    if (!URL.canParse(next, at)) throw new DownloadFailed('it is redirected to no address')
    at = new URL(next, at).href
    if (!isFetchable(at)) throw new DownloadFailed(`it is redirected to ${new URL(at).origin}, which is not https`)
  }
  throw new DownloadFailed(`it is redirected more than ${REDIRECTS_MAX} times`)
}

async function readBody(response: Response, { bytesMax, onBytes }: DownloadOptions): Promise<Buffer> {
  const tooLarge = () => new DownloadFailed(`it is larger than ${bytesMax} bytes (ip.downloadBytesMax)`)
  if (Number(response.headers.get('content-length') ?? 0) > bytesMax) {
    await response.body?.cancel()
    throw tooLarge()
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > bytesMax) throw tooLarge()
    chunks.push(chunk)
    onBytes(chunk.length)
  }
  return Buffer.concat(chunks, bytes)
}

function moment(header: string | null): number | null {
  const at = Date.parse(header ?? '')
  return Number.isNaN(at) ? null : at
}
