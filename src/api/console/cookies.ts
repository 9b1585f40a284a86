// The cookies of the console: the session, that this browser signed in before, and a sign-in that is under way elsewhere. Under HTTPS their names have the prefix that
// keeps other hosts of the domain from setting them.

import type { HttpHeader } from '../../http/message.ts'
import { SESSION_MS } from './sessions.ts'

const COOKIE_CHARS_MAX = 600
const DEVICE_SECONDS = 365 * 86_400

export interface Cookies {
  /** '' where there is none. */
  session(header: string): string
  device(header: string): string
  trip(header: string): string
  set(token: string, device: string): readonly HttpHeader[]
  setSession(token: string): readonly HttpHeader[]
  clear(): readonly HttpHeader[]
  setTrip(sealed: string, seconds: number): readonly HttpHeader[]
  clearTrip(): readonly HttpHeader[]
}

export function openCookies(isSecure: boolean): Cookies {
  const nameOf = (name: string) => `${isSecure ? '__Host-' : ''}fingerpost_${name}`
  const [session, device, trip] = [nameOf('session'), nameOf('device'), nameOf('oidc')]
  const put = (name: string, value: string, seconds: number): HttpHeader => [
    'Set-Cookie',
    `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
  ]
  return {
    session: (header) => readCookie(header, session),
    device: (header) => readCookie(header, device),
    trip: (header) => readCookie(header, trip),
    set: (token, known) => [put(session, token, SESSION_MS / 1_000), put(device, known, DEVICE_SECONDS)],
    setSession: (token) => [put(session, token, SESSION_MS / 1_000)],
    clear: () => [put(session, '', 0)],
    setTrip: (sealed, seconds) => [put(trip, sealed, seconds)],
    clearTrip: () => [put(trip, '', 0)],
  }
}

/** The first of that name, as browsers send the most specific one first. */
function readCookie(header: string, name: string): string {
  for (const part of header.split(/[;,]/)) {
    const [found, value = ''] = part.trim().split('=')
    if (found === name) return /^[\w.-]*$/.test(value) && value.length <= COOKIE_CHARS_MAX ? value : ''
  }
  return ''
}
