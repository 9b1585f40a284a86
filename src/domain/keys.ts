// The text of API keys: how one is made and how a mistyped one is told from a real one without any look-up.

import type { Env } from './event.ts'
import { BASE62, base62, type RandomBytes } from './ids.ts'
import type { KeyKind } from './workspace.ts'

const CHECKSUM_CHARS = 6
/** 62^43 is just above 2^256. */
const SECRET_CHARS = 43
const FORM = /^([ps])k_(live|test)_[0-9A-Za-z]{49}$/

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** CRC-32 (IEEE) of an ASCII text, unsigned. */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (let i = 0; i < text.length; i++) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] as number)
  return (crc ^ 0xffffffff) >>> 0
}

/** CRC-32 in base62, six characters. It catches typing errors and cut copies; it is no secret. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < CHECKSUM_CHARS; i++) {
    digits = BASE62[rest % 62] + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

export const keyPrefix = (kind: KeyKind, env: Env): string => `${kind === 'public' ? 'pk' : 'sk'}_${env}_`

export function makeKey(kind: KeyKind, env: Env, random: RandomBytes): string {
  const body = keyPrefix(kind, env) + base62(SECRET_CHARS, random)
  return body + checksum(body)
}

export interface KeyForm {
  readonly kind: KeyKind
  readonly env: Env
}

/** Kind and environment of a well-formed key whose checksum is right, else null. Says nothing about its existence. */
export function keyForm(text: string): KeyForm | null {
  const parts = FORM.exec(text)
  if (parts === null || checksum(text.slice(0, -CHECKSUM_CHARS)) !== text.slice(-CHECKSUM_CHARS)) return null
  return { kind: parts[1] === 'p' ? 'public' : 'secret', env: parts[2] as Env }
}

export const isWellFormed = (text: string): boolean => keyForm(text) !== null

/** What may be shown of a key for ever. */
export const last4 = (text: string): string => text.slice(-4)
