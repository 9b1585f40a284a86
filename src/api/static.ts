// The files browsers load: the SDK and the demo page, read into memory once and compressed there, under a policy that lets nothing else
// in. The SDK has a second address that names its version, and never changes.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { HttpHeader } from '../http/message.ts'
import type { Http } from '../http/server.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Sites load the SDK from their own pages.
const FOR_OTHER_SITES: readonly HttpHeader[] = [
  ['Access-Control-Allow-Origin', '*'],
  ['Cross-Origin-Resource-Policy', 'cross-origin'],
]

function* filesUnder(dir: string): Generator<string> {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name)
    if (statSync(path).isDirectory()) yield* filesUnder(path)
    else yield path
  }
}

const COMPRESSED_BYTES_MIN = 1_024
const FOREVER = 'public, max-age=31536000, immutable'
const compressors = {
  br: (body: Uint8Array) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (body: Uint8Array) => promisify(gzip)(body, { level: 9 }),
} as const
type Coding = keyof typeof compressors

interface StaticFile {
  /** Where it is served; an `index.html` also answers for its folder. */
  readonly paths: readonly string[]
  readonly contentType: string
  /** Of what it holds, whatever its coding. */
  readonly etag: string
  readonly headers: readonly HttpHeader[]
  readonly body: Uint8Array
}

/** What `/v1/meta` says of the SDK. */
export interface SdkFile {
  readonly version: string
  /** Of the classic script of exactly this build. */
  readonly path: string
}

/** The address of a script that names its version and its bytes. */
const versionedPath = (dir: string, file: string, hash: string): string =>
  `/sdk/${readFileSync(join(dir, 'version.txt'), 'utf8').trim()}-${hash.slice(0, 12)}${extname(file)}`

const hashOf = (body: Uint8Array): string => createHash('sha256').update(body).digest('base64url')

function readSdkFile(dir: string): SdkFile {
  const path = versionedPath(dir, 'sdk.js', hashOf(readFileSync(join(dir, 'sdk.js'))))
  return { version: readFileSync(join(dir, 'version.txt'), 'utf8').trim(), path }
}

/** Every known kind of file under `dir`. */
function readFiles(dir: string): StaticFile[] {
  const files: StaticFile[] = []
  for (const file of filesUnder(dir)) {
    const contentType = TYPES[extname(file)]
    if (contentType === undefined) continue
    const body = readFileSync(file)
    const hash = hashOf(body)
    const path = `/${relative(dir, file)}`
    const isSdk = path.startsWith('/sdk.')
    const age = contentType.startsWith('text/html') ? 'no-cache' : 'public, max-age=300'
    const headers: HttpHeader[] = [
      ['Vary', 'Accept-Encoding'],
      ['X-Content-Type-Options', 'nosniff'],
      ['Referrer-Policy', 'no-referrer'],
      ['Content-Security-Policy', POLICY],
      ...(isSdk ? FOR_OTHER_SITES : []),
    ]
    const paths = path.endsWith('/index.html') ? [path, path.slice(0, -10), path.slice(0, -11)] : [path]
    const common = { contentType, etag: hash.slice(0, 22), body }
    files.push({ ...common, paths: paths.filter((at) => at !== ''), headers: [...headers, ['Cache-Control', age]] })
    if (isSdk) {
      files.push({
        ...common,
        paths: [versionedPath(dir, file, hash)],
        headers: [...headers, ['Cache-Control', FOREVER]],
      })
    }
  }
  return files
}

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

/** Compresses beside the start: until that is done files are sent as they are. */
async function compress(body: Uint8Array, into: Map<Coding, Uint8Array>): Promise<void> {
  if (body.length < COMPRESSED_BYTES_MIN) return
  for (const coding of ['br', 'gzip'] as const) into.set(coding, await compressors[coding](body))
}

async function serveFiles(http: Pick<Http, 'route'>, files: readonly StaticFile[]): Promise<void> {
  const compressing = files.map(({ paths, contentType, etag, headers, body }) => {
    const compressed = new Map<Coding, Uint8Array>()
    for (const path of paths) {
      http.route(
        'GET',
        path,
        (request) => {
          const coding = codingFor(request.header('accept-encoding'), compressed)
          const tag = `"${etag}${coding === null ? '' : `-${coding}`}"`
          const own: HttpHeader[] = [...headers, ['ETag', tag]]
          if (request.header('if-none-match') === tag) return { status: 304, headers: own }
          if (coding === null) return { status: 200, headers: own, contentType, body }
          const whole = compressed.get(coding) as Uint8Array
          return { status: 200, headers: [...own, ['Content-Encoding', coding]], contentType, body: whole }
        },
        { headers: ['if-none-match', 'accept-encoding'] },
      )
    }
    return compress(body, compressed)
  })
  await Promise.all(compressing)
}

export interface Static {
  readonly sdk: SdkFile
  /** Resolves when everything is compressed. */
  serve(http: Pick<Http, 'route'>): Promise<void>
}

/** What the build left in `dir`. Throws when the folder is missing: the build is not complete. */
export const openStatic = (dir: string): Static => ({
  sdk: readSdkFile(dir),
  serve: (http) => serveFiles(http, readFiles(dir)),
})
