// The files browsers load: the SDK and the demo page, read into memory once, under a policy that lets nothing else in.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import type { Header } from '../http/message.ts'
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

function* filesUnder(dir: string): Generator<string> {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name)
    if (statSync(path).isDirectory()) yield* filesUnder(path)
    else yield path
  }
}

/** Serves every known kind of file under `dir` by its relative path; `index.html` also by its folder. */
export function serveStatic(http: Pick<Http, 'route'>, dir: string): void {
  for (const file of filesUnder(dir)) {
    const contentType = TYPES[extname(file)]
    if (contentType === undefined) continue
    const body = readFileSync(file)
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    const path = `/${relative(dir, file)}`
    const headers: Header[] = [
      ['ETag', etag],
      ['Cache-Control', contentType.startsWith('text/html') ? 'no-cache' : 'public, max-age=300'],
      ['X-Content-Type-Options', 'nosniff'],
      ['Referrer-Policy', 'no-referrer'],
      ['Content-Security-Policy', POLICY],
      // Sites load the SDK from their own pages.
      ...(path.startsWith('/sdk')
        ? ([
            ['Access-Control-Allow-Origin', '*'],
            ['Cross-Origin-Resource-Policy', 'cross-origin'],
          ] as const)
        : []),
    ]
    const paths = path.endsWith('/index.html') ? [path, path.slice(0, -10), path.slice(0, -11)] : [path]
    for (const at of paths) {
      if (at === '') continue
      http.route(
        'GET',
        at,
        (request) =>
          request.header('if-none-match') === etag
            ? { status: 304, headers }
            : { status: 200, headers, contentType, body },
        { headers: ['if-none-match'] },
      )
    }
  }
}
