// Fetching a file of IP data: conditional, bounded in size and time, over redirects that stay as safe as the address was.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublicAddress } from '../domain/public-address.ts'
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
/** Of error pages, of sign-ins to somebody's network, and of no list. */
const PAGE = /^\s*(?:text\/html|application\/xhtml)/i

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
    if (response.status !== 200) throw await refusal(response, `the server answered ${response.status}`)
    const type = response.headers.get('content-type') ?? ''
    if (PAGE.test(type)) throw await refusal(response, `the server sent a page (${type.slice(0, 64)}), and no data`)
    return { content: await readBody(response, options), etag, lastModified }
  } catch (error) {
    if (error instanceof DownloadFailed) throw error
    if (signal.aborted) throw new DownloadFailed(`it took longer than ${options.msMax} ms`)
    const { message, cause } = error as Error
    throw new DownloadFailed(cause instanceof Error ? `${message}: ${cause.message}` : message)
  }
}

/** Nothing of the body is waited for. */
async function refusal(response: Response, reason: string): Promise<DownloadFailed> {
  await response.body?.cancel()
  return new DownloadFailed(reason)
}

/**
 * Whether a host is of the public internet. A name that nobody knows here counts as such, since a proxy may know it. What it
 * resolves to may change until it is fetched, but then a host of a private network would need a certificate for that name.
 */
async function isPublicHost(hostname: string): Promise<boolean> {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return isPublicAddress(host)
  const found = await lookup(host, { all: true }).catch(() => [])
  return found.every(({ address }) => isPublicAddress(address))
}

async function checkRedirect(from: URL, to: URL): Promise<void> {
  if (!isFetchable(to.href) || (from.protocol === 'https:' && to.protocol !== 'https:')) {
    throw new DownloadFailed(`it is redirected to ${to.origin}, which is not https`)
  }
  // A mirror in the operator's own network may have others beside it.
  if (!(await isPublicHost(to.hostname)) && (await isPublicHost(from.hostname))) {
    throw new DownloadFailed(`it is redirected to ${to.origin}, which is in a private network`)
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
    const to = new URL(next, at)
    await checkRedirect(new URL(url), to)
    at = to.href
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
