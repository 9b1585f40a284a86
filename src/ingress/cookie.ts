// The first-party cookie: a page of the site that owns a key keeps its storage token where scripts cannot reach it, so that it outlives
// storage that scripts write, which some browsers empty after a week.

import type { Env } from '../domain/event.ts'
import type { HttpHeader } from '../http/message.ts'
import type { Caller } from '../records/auth.ts'

const DAYS = 400
const NAMES: Readonly<Record<Env, string>> = { live: 'fp_live', test: 'fp_test' }
const TOKEN = /^st_[\w.~-]{1,509}$/
const TOKEN_MEMBER = '"storageToken":"'

/**
 * The origin of a page that may have the cookie, or null: the service's own origin as this request was addressed, or one that the key's
 * allow-list names. Anybody else's page could read what belongs to another site.
 */
export function firstPartyOrigin(caller: Caller, origin: string, host: string): string | null {
  if (caller.key.kind !== 'public' || origin === '') return null
  if (origin === `https://${host}` || origin === `http://${host}`) return origin
  return caller.key.origins?.includes(origin) === true ? origin : null
}

/** What a browser needs to hear so that a page of another origin may send and keep cookies (Fetch, 3.2.5). */
export const credentialHeaders = (origin: string): readonly HttpHeader[] => [
  ['Access-Control-Allow-Origin', origin],
  ['Access-Control-Allow-Credentials', 'true'],
  ['Vary', 'Origin'],
]

/** The token in a Cookie header, or null. */
export function tokenInCookies(cookies: string, env: Env): string | null {
  if (cookies === '') return null
  const start = `${NAMES[env]}=`
  for (const pair of cookies.split('; ')) {
    if (pair.startsWith(start)) return TOKEN.test(pair.slice(start.length)) ? pair.slice(start.length) : null
  }
  return null
}

/** `body`: an answer to a public key, which has the token behind everything a client sent. Null where it has none. */
export function cookieOf(body: string, env: Env, domain: string): HttpHeader | null {
  const at = body.lastIndexOf(TOKEN_MEMBER)
  if (at < 0) return null
  const from = at + TOKEN_MEMBER.length
  const token = body.slice(from, body.indexOf('"', from))
  if (!TOKEN.test(token)) return null
  return setCookie(env, token, DAYS * 86_400, domain)
}

export const endedCookie = (env: Env, domain: string): HttpHeader => setCookie(env, '', 0, domain)

function setCookie(env: Env, value: string, maxAgeSeconds: number, domain: string): HttpHeader {
  const scope = domain === '' ? '' : `; Domain=${domain}`
  const terms = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; Secure; SameSite=Lax${scope}`
  return ['Set-Cookie', `${NAMES[env]}=${value}; ${terms}`]
}
