// Passwords as scrypt: how they are stored and compared, a few at once, with the same work whether there is one to compare with.

import { scrypt, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../domain/errors.ts'
import type { RandomBytes } from '../../domain/ids.ts'
import { GaveUp, openSemaphore } from '../../lib/semaphore.ts'

/** log2 of N, r, p: 32 MiB and about a quarter of a second of one core. */
const COST = { logN: 15, r: 8, p: 3 } as const
const SALT_BYTES = 16
const HASH_BYTES = 32
const AT_ONCE_MAX = 2
/** More would wait for seconds. */
const WAITING_MAX = 16
const RETRY_AFTER_SECONDS = 2
const FORM = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]{8,64})\$([\w-]{16,128})$/
/** Of nobody: what a password is compared with where there is none. */
const NOBODY = Buffer.alloc(SALT_BYTES)

export interface Cost {
  readonly logN: number
  readonly r: number
  readonly p: number
}

export interface Passwords {
  /** What is stored of a password. Throws unavailable when too many wait. */
  hash(password: string): Promise<string>
  /** Takes as long for `stored: null`, which nothing matches. Throws unavailable when too many wait. */
  verify(password: string, stored: string | null): Promise<boolean>
}

export type Derive = (password: string, salt: Uint8Array, cost: Cost) => Promise<Buffer>

const derive: Derive = (password, salt, { logN, r, p }) =>
  new Promise((resolve, reject) => {
    const options = { N: 2 ** logN, r, p, maxmem: 256 * 2 ** logN * r }
    // The same text from every keyboard.
    scrypt(password.normalize('NFKC'), salt, HASH_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })

export function openPasswords(random: RandomBytes, by: Derive = derive, cost: Cost = COST): Passwords {
  const turns = openSemaphore(AT_ONCE_MAX, WAITING_MAX)

  async function taking(password: string, salt: Uint8Array, at: Cost): Promise<Buffer> {
    try {
      return await turns.run(() => by(password, salt, at))
    } catch (error) {
      throw error instanceof GaveUp ? new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS }) : error
    }
  }

  return {
    async hash(password) {
      const salt = Buffer.from(random(SALT_BYTES))
      const key = await taking(password, salt, cost)
      return `scrypt$${cost.logN}$${cost.r}$${cost.p}$${salt.toString('base64url')}$${key.toString('base64url')}`
    },
    async verify(password, stored) {
      const [, logN, r, p, salt = '', hash = ''] = FORM.exec(stored ?? '') ?? []
      if (logN === undefined) {
        await taking(password, NOBODY, cost)
        return false
      }
      const expected = Buffer.from(hash, 'base64url')
      const at = { logN: Number(logN), r: Number(r), p: Number(p) }
      const key = await taking(password, Buffer.from(salt, 'base64url'), at)
      return key.length === expected.length && timingSafeEqual(key, expected)
    },
  }
}
