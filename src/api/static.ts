// The files browsers load: the SDK and the demo page, read into memory once and compressed there, under a policy that lets nothing else
// in. The SDK has a second address that names its version, and never changes.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import type { HttpHeader } from '../http/message.ts'
import type { Http } from '../http/server.ts'
import { type Body, hashOf, openServedBody, SERVED_BODY_HEADERS } from './served-body.ts'

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

const FOREVER = 'public, max-age=31536000, immutable'

interface StaticFile extends Body {
  /** Where it is served; an `index.html` also answers for its folder. */
  readonly paths: readonly string[]
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
    const path = `/${relative(dir, file)}`
    const isSdk = path.startsWith('/sdk.')
    const age = contentType.startsWith('text/html') ? 'no-cache' : 'public, max-age=300'
    const headers: HttpHeader[] = [
      ['X-Content-Type-Options', 'nosniff'],
      ['Referrer-Policy', 'no-referrer'],
      ['Content-Security-Policy', POLICY],
      ...(isSdk ? FOR_OTHER_SITES : []),
    ]
    const paths = path.endsWith('/index.html') ? [path, path.slice(0, -10), path.slice(0, -11)] : [path]
    const common = { contentType, body }
    files.push({ ...common, paths: paths.filter((at) => at !== ''), headers: [...headers, ['Cache-Control', age]] })
    if (isSdk) {
      files.push({
        ...common,
        paths: [versionedPath(dir, file, hashOf(body))],
        headers: [...headers, ['Cache-Control', FOREVER]],
      })
    }
  }
  return files
}

/** Compresses beside the start. */
async function serveFiles(http: Pick<Http, 'route'>, files: readonly StaticFile[]): Promise<void> {
  const served = files.map(({ paths, ...body }) => {
    const file = openServedBody(body)
    for (const path of paths) http.route('GET', path, file.answer, { headers: SERVED_BODY_HEADERS })
    return file.compressed
  })
  await Promise.all(served)
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
