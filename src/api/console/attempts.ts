// How often somebody may try a password. Browsers that signed in to an account before are counted by themselves: whoever guesses from
// elsewhere locks out others who are elsewhere, never the owner's own browser.

import { hash } from 'node:crypto'
import { base62, type RandomBytes } from '../../domain/ids.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { sameText } from '../../lib/same-text.ts'
import type { Sealer } from '../../lib/sealed.ts'
import type { Limits, RateRule } from '../../limits/limits.ts'
import { rateLimited } from '../rate-limits.ts'

const NONCE_CHARS = 22

export interface SignInLimits {
  /** Counts one. Throws rate_limited, before anything is compared. `device`: the cookie of a known browser, or ''. */
  signIn(email: string, address: string, device: string): Promise<void>
  /** The same of a link, which no guessing finds: it bounds the work. */
  link(address: string): Promise<void>
  /** The same of somebody who is signed in and has to say the password again. */
  again(personId: string): Promise<void>
  /** For the cookie of a browser that has signed in. */
  makeDevice(email: string): string
}

const rule = (name: string, limit: number, windowMs: number): RateRule => ({ name, kind: 'fixed', limit, windowMs })
const PER_ADDRESS = rule('signin.address', 60, 5 * MINUTE_MS)
const PER_PAIR = rule('signin.pair', 5, MINUTE_MS)
const PER_ACCOUNT = rule('signin.account', 30, HOUR_MS)
const PER_DEVICE = rule('signin.device', 10, 5 * MINUTE_MS)
const PER_PERSON = rule('signin.again', 10, 5 * MINUTE_MS)

const short = (text: string): string => hash('sha256', text, 'hex').slice(0, 32)

export function openSignInLimits(
  limits: Pick<Limits, 'take'>,
  sealer: Pick<Sealer, 'sign'>,
  random: RandomBytes,
): SignInLimits {
  const deviceOf = (email: string, nonce: string) => `${nonce}.${sealer.sign(`console/device\0${email}\0${nonce}`)}`
  const isKnown = (email: string, device: string) => sameText(device, deviceOf(email, device.slice(0, NONCE_CHARS)))

  async function take(...counted: readonly (readonly [RateRule, string])[]): Promise<void> {
    for (const [one, key] of counted) {
      const { allowed, retryAfterMs } = await limits.take(`console/${short(key)}`, [one])
      if (!allowed) throw rateLimited(retryAfterMs)
    }
  }

  return {
    async signIn(email, address, device) {
      if (isKnown(email, device)) return take([PER_DEVICE, device])
      await take([PER_ADDRESS, address], [PER_PAIR, `${email}\0${address}`], [PER_ACCOUNT, email])
    },
    link: (address) => take([PER_ADDRESS, address]),
    again: (personId) => take([PER_PERSON, personId]),
    makeDevice: (email) => deviceOf(email, base62(NONCE_CHARS, random)),
  }
}
