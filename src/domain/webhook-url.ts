// Where a webhook may lead, as far as its address tells: what is decided without asking any name server. Whether the host's
// addresses may be reached is decided again whenever one is connected to.

import { canonicalIp } from './ip.ts'
import { URL_CHARS_MAX } from './webhook.ts'

/** `private`: a name that means something only inside somebody's network. */
export type HostKind = 'public' | 'private' | 'literal'

export interface WebhookTarget {
  readonly url: URL
  /** Without brackets. */
  readonly host: string
  readonly kind: HostKind
}

const PRIVATE_NAME = /(?:^|\.)(?:localhost|local|internal)$/

/** A sentence says what is wrong. */
export function readTarget(text: string): WebhookTarget | string {
  if (text.length > URL_CHARS_MAX) return `Must have at most ${URL_CHARS_MAX} characters.`
  // Parsers leave out white space and turn backslashes, each in its own way: what they differ on is refused.
  if (!/^https:\/\/[^\s\\\p{Cc}]+$/iu.test(text) || !URL.canParse(text)) return 'Must be an https address.'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || authorityOf(text).includes('@')) return 'Must not hold credentials.'
  if (url.hash !== '' || text.includes('#')) return 'Must not have a fragment.'
  // Parsers skip further slashes, or connect to port 0 as to none; nobody means either.
  if (/^(?:$|:)/.test(authorityOf(text)) || url.port === '0') return 'Must name a host, and no port 0.'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === '' || url.protocol !== 'https:') return 'Must be an https address.'
  return { url, host, kind: kindOf(host) }
}

const authorityOf = (text: string): string => text.slice('https://'.length).split(/[/?#]/, 1)[0] ?? ''

function kindOf(host: string): HostKind {
  if (canonicalIp(host) !== null) return 'literal'
  const name = host.replace(/\.+$/, '')
  // A last label of digits is an address in some spelling, never a name.
  if (/^\d+$/.test(name.split('.').at(-1) ?? '')) return 'literal'
  return !name.includes('.') || PRIVATE_NAME.test(name) ? 'private' : 'public'
}
