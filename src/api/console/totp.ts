// One-time codes of an authenticator (RFC 6238: SHA-1, six digits, thirty seconds), which step of time a code is of, and the address
// an authenticator reads its secret from.

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { RandomBytes } from '../../domain/ids.ts'

const STEP_MS = 30_000
const DIGITS = 6
const SECRET_BYTES = 20
/** Clocks differ: the step before and the one after count as well. */
const STEPS_APART = [0, -1, 1]
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export const makeTotpSecret = (random: RandomBytes): string =>
  Array.from(
    Array.from(random(SECRET_BYTES), bitsOf).join('').matchAll(/.{5}/g),
    ([bits]) => BASE32[Number.parseInt(bits, 2)],
  ).join('')

const bitsOf = (byte: number): string => byte.toString(2).padStart(8, '0')

function decode(secret: string): Buffer {
  const bits = Array.from(secret, (char) => BASE32.indexOf(char).toString(2).padStart(5, '0')).join('')
  return Buffer.from(Array.from(bits.matchAll(/.{8}/g), ([byte]) => Number.parseInt(byte, 2)))
}

export function totpCode(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', decode(secret)).update(counter).digest()
  const at = mac.readUInt8(mac.length - 1) & 15
  return String((mac.readUInt32BE(at) & 0x7fff_ffff) % 10 ** DIGITS).padStart(DIGITS, '0')
}

export const totpStep = (nowMs: number): number => Math.floor(nowMs / STEP_MS)

/** The step a code is of; null: of none near now. */
export function stepOfCode(secret: string, code: string, nowMs: number): number | null {
  const steps = STEPS_APART.map((apart) => totpStep(nowMs) + apart)
  const found = steps.filter((step) => timingSafeEqual(Buffer.from(totpCode(secret, step)), Buffer.from(code)))
  return found[0] ?? null
}

export const totpUri = (secret: string, email: string): string =>
  `otpauth://totp/Fingerpost:${encodeURIComponent(email)}?secret=${secret}&issuer=Fingerpost&algorithm=SHA1&digits=${DIGITS}&period=30`
