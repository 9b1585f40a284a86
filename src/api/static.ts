// The files browsers load: the SDK and the demo page, read into memory once, under a policy that lets nothing else in.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
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

export interface StaticFile {
  /** Where it is served; an `index.html` also answers for its folder. */
  readonly paths: readonly string[]
  readonly contentType: string
  readonly etag: string
  readonly headers: readonly HttpHeader[]
  readonly body: Uint8Array
}

/** Every known kind of file under `dir`. Throws when the folder is missing: the build is not complete. */
export function readFiles(dir: string): StaticFile[] {
  const files: StaticFile[] = []
  for (const file of filesUnder(dir)) {
    const contentType = TYPES[extname(file)]
    if (contentType === undefined) continue
    const body = readFileSync(file)
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    const path = `/${relative(dir, file)}`
    const headers: HttpHeader[] = [
      ['ETag', etag],
      ['Cache-Control', contentType.startsWith('text/html') ? 'no-cache' : 'public, max-age=300'],
      ['X-Content-Type-Options', 'nosniff'],
      ['Referrer-Policy', 'no-referrer'],
      ['Content-Security-Policy', POLICY],
      ...(path.startsWith('/sdk') ? FOR_OTHER_SITES : []),
    ]
    const paths = path.endsWith('/index.html') ? [path, path.slice(0, -10), path.slice(0, -11)] : [path]
    files.push({ paths: paths.filter((at) => at !== ''), contentType, etag, headers, body })
  }
  return files
}

export function serveStatic(http: Pick<Http, 'route'>, files: readonly StaticFile[]): void {
  for (const { paths, contentType, etag, headers, body } of files) {
    const whole = { status: 200, headers, contentType, body }
    const unchanged = { status: 304, headers }
    for (const path of paths) {
      http.route('GET', path, (request) => (request.header('if-none-match') === etag ? unchanged : whole), {
        headers: ['if-none-match'],
      })
    }
  }
}
