// The console's page and what it loads, as the build left them: read into memory once, compressed there, under a policy that lets
// nothing else in.

import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { HttpHeader } from '../../http/message.ts'
import type { Http } from '../../http/server.ts'
import { type Body, openServedBody, SERVED_BODY_HEADERS } from '../served-body.ts'

/**
 * Every address that is a page of the console: one document answers at all of them and its script shows the page. `:id` is of whatever
 * the page is about.
 */
export const CONSOLE_PAGES = [
  ...['', '/', '/setup', '/join', '/reset', '/sign-in', '/oidc'],
  ...['/events', '/events/:id', '/review', '/visitors', '/visitors/:id'],
  ...['/rules', '/rules/new', '/rules/:id', '/lists', '/lists/:id', '/webhooks', '/webhooks/:id'],
  ...['/analytics', '/alerts', '/alerts/:id', '/settings', '/system'],
] as const

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}
/** Content Security Policy 3 with Trusted Types: no script but the build's, no text that becomes markup, no frame around it. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
].join('; ')
const HEADERS: readonly HttpHeader[] = [
  ['Content-Security-Policy', POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Permissions-Policy', 'camera=(), geolocation=(), microphone=()'],
]
/** Names change with what is in the file. */
const FOREVER: HttpHeader = ['Cache-Control', 'public, max-age=31536000, immutable']
const NEVER: HttpHeader = ['Cache-Control', 'no-store']

/** Serves what is in `dir`, and leads there from `/dashboard`. Throws when the folder is missing: the build is not complete. */
export function serveConsolePages(http: Pick<Http, 'route'>, dir: string): void {
  const page = { contentType: 'text/html; charset=utf-8', body: readFileSync(join(dir, 'index.html')) }
  serve(
    http,
    { ...page, headers: [...HEADERS, NEVER] },
    CONSOLE_PAGES.map((path) => `/console${path}`),
  )
  for (const name of readdirSync(join(dir, 'assets'))) {
    const contentType = TYPES[extname(name)]
    if (contentType === undefined) continue
    const body = readFileSync(join(dir, 'assets', name))
    serve(http, { contentType, body, headers: [...HEADERS, FOREVER] }, [`/console/assets/${name}`])
  }
  for (const path of ['/dashboard', '/dashboard/'])
    http.route('GET', path, () => ({ status: 302, headers: [['Location', '/console/']], body: '' }))
}

function serve(http: Pick<Http, 'route'>, body: Body, paths: readonly string[]): void {
  const served = openServedBody(body)
  for (const path of paths) http.route('GET', path, served.answer, { headers: SERVED_BODY_HEADERS })
}
