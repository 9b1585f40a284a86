// Authenticators of people: a secret that waits to be confirmed, and codes each of which counts once.

import type { RandomBytes } from '../../domain/ids.ts'
import type { Kv, KvKey } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Sealer } from '../../lib/sealed.ts'
import type { StoredPerson } from '../../records/people.ts'
import { CONSOLE_SCOPE } from './sessions.ts'
import { makeTotpSecret, stepOfCode } from './totp.ts'

const CONFIRM_MS = 10 * MINUTE_MS
/** Codes of longer ago are refused by their time. */
const REMEMBER_MS = HOUR_MS

export interface Authenticators {
  /** A secret to be confirmed within ten minutes; one that waited before is forgotten. */
  begin(personId: string): Promise<string>
  /** The sealed secret to be stored, when the code is of the one that waits; else null. */
  confirm(personId: string, code: string): Promise<string | null>
  /** Whether it is a code of now that nobody has used. Throws Unreadable when the secret cannot be opened. */
  take(person: Pick<StoredPerson, 'id' | 'totp'>, code: string): Promise<boolean>
}

const waitingKey = (personId: string): KvKey => ['authenticator-waiting', personId]
const stepKey = (personId: string): KvKey => ['authenticator-step', personId]
const contextOf = (personId: string): string => `authenticator/${personId}`

export function openAuthenticators(
  kv: Pick<Kv, 'get' | 'commit'>,
  sealer: Pick<Sealer, 'seal' | 'open'>,
  clock: Pick<Clock, 'now'>,
  random: RandomBytes,
): Authenticators {
  /** Of two requests with the same code one is first. */
  async function use(personId: string, sealed: string, code: string): Promise<boolean> {
    const step = stepOfCode(sealer.open(sealed, contextOf(personId)), code, clock.now())
    if (step === null) return false
    const key = stepKey(personId)
    const [last] = await kv.get<number>(CONSOLE_SCOPE, [key])
    if (last != null && last.value >= step) return false
    const check = [[key, last?.version ?? null]] as const
    const [isFirst] = await kv.commit([
      { scope: CONSOLE_SCOPE, check, put: [{ key, value: step, ttlMs: REMEMBER_MS }] },
    ])
    return isFirst === true
  }

  return {
    async begin(personId) {
      const secret = makeTotpSecret(random)
      const value = sealer.seal(secret, contextOf(personId))
      await kv.commit([{ scope: CONSOLE_SCOPE, put: [{ key: waitingKey(personId), value, ttlMs: CONFIRM_MS }] }])
      return secret
    },
    async confirm(personId, code) {
      const [waiting] = await kv.get<string>(CONSOLE_SCOPE, [waitingKey(personId)])
      if (waiting == null || !(await use(personId, waiting.value, code))) return null
      await kv.commit([{ scope: CONSOLE_SCOPE, drop: [waitingKey(personId)] }])
      return waiting.value
    },
    take: async ({ id, totp }, code) => totp !== null && (await use(id, totp, code)),
  }
}
