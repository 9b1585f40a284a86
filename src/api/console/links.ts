// The links by which somebody comes in without a password: to set up the console, to join, to choose a new password. The first and the
// last follow from the master key, so that a command can print them without the store, and are used up by what is stored.

import { createHash } from 'node:crypto'
import { base62, type RandomBytes } from '../../domain/ids.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { sameText } from '../../lib/same-text.ts'
import type { Sealer } from '../../lib/sealed.ts'

const RESET_MS = HOUR_MS
const SECRET_CHARS = 43
export const LINK_TOKEN_CHARS_MAX = 600

type Signer = Pick<Sealer, 'sign'>

/** The same until the console is set up, and worth nothing from then on. */
export const setupToken = (sealer: Signer): string => sealer.sign('console/setup')
export const isSetupToken = (sealer: Signer, token: string): boolean => sameText(token, setupToken(sealer))

export const setupLink = (address: string, sealer: Signer): string =>
  `${address}/console/setup#token=${setupToken(sealer)}`

const resetMac = (sealer: Signer, email: string, issuedAt: number): string =>
  sealer.sign(`console/reset\0${email}\0${issuedAt}`)

export function resetLink(address: string, sealer: Signer, email: string, nowMs: number): string {
  const token = `r.${Buffer.from(email).toString('base64url')}.${nowMs}.${resetMac(sealer, email, nowMs)}`
  return `${address}/console/reset#token=${token}`
}

export interface Reset {
  readonly email: string
  readonly issuedAt: number
}

/** null: no such link was made, or it is too old. */
export function readReset(sealer: Signer, token: string, nowMs: number): Reset | null {
  const [, text = '', at = '', mac = ''] = /^r\.([\w-]{1,1024})\.(\d{1,15})\.([\w-]{43})$/.exec(token) ?? []
  const email = Buffer.from(text, 'base64url').toString()
  const issuedAt = Number(at)
  if (!sameText(mac, resetMac(sealer, email, issuedAt))) return null
  return issuedAt + RESET_MS > nowMs && issuedAt <= nowMs ? { email, issuedAt } : null
}

/** What an invitation is known by: only a digest of its secret is stored. */
export interface MadeInvitation {
  readonly token: string
  readonly digest: string
}

export function makeInvitation(personId: string, random: RandomBytes): MadeInvitation {
  const secret = base62(SECRET_CHARS, random)
  return { token: `i.${personId}.${secret}`, digest: invitationDigest(secret) }
}

const invitationDigest = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export const joinLink = (address: string, { token }: MadeInvitation): string => `${address}/console/join#token=${token}`

export function readInvitation(token: string): { readonly personId: string; readonly digest: string } | null {
  const [, personId, secret] = /^i\.(per_[A-Za-z0-9]{20})\.([A-Za-z0-9]{43})$/.exec(token) ?? []
  return personId === undefined || secret === undefined ? null : { personId, digest: invitationDigest(secret) }
}
