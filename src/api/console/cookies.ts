// The two cookies of the console: the session, and that this browser signed in before. Under HTTPS their names have the prefix that
// keeps other hosts of the domain from setting them.

import type { HttpHeader } from '../../http/message.ts'
import { SESSION_MS } from './sessions.ts'

const COOKIE_CHARS_MAX = 200
const DEVICE_SECONDS = 365 * 86_400

export interface Cookies {
  /** '' where there is none. */
  session(header: string): string
  device(header: string): string
  set(token: string, device: string): readonly HttpHeader[]
  setSession(token: string): readonly HttpHeader[]
  clear(): readonly HttpHeader[]
}

export function openCookies(isSecure: boolean): Cookies {
  const nameOf = (name: string) => `${isSecure ? '__Host-' : ''}fingerpost_${name}`
  const [session, device] = [nameOf('session'), nameOf('device')]
  const put = (name: string, value: string, seconds: number): HttpHeader => [
    'Set-Cookie',
    `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`,
  ]
  return {
    session: (header) => readCookie(header, session),
    device: (header) => readCookie(header, device),
    set: (token, known) => [put(session, token, SESSION_MS / 1_000), put(device, known, DEVICE_SECONDS)],
    setSession: (token) => [put(session, token, SESSION_MS / 1_000)],
    clear: () => [put(session, '', 0)],
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
