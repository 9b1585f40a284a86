// Who may see what the demo page shows of the test environment: links that open it once, and the sessions they open. Both live in this
// process and end with it.

import { createHash } from 'node:crypto'
import { base62, type RandomBytes } from '../../domain/ids.ts'
import type { Clock } from '../../lib/clock.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'

export const DEMO_SESSION_MS = 12 * HOUR_MS
const LINK_MS = DAY_MS
const TOKEN_CHARS = 43
/** Of each kind; the oldest make room. */
const KEPT_MAX = 100

export interface DemoAccess {
  /** What a new link carries behind `#token=`. */
  makeToken(): string
  /** Whether it opens the page, which it does once. */
  take(token: string): boolean
  /** A new session, as its cookie has it. */
  openSession(): string
  hasSession(session: string): boolean
}

export interface Demo {
  readonly access: DemoAccess
  /** Whose test environment it shows. */
  readonly workspace: string
  /** Whether browsers reach the service over TLS only. */
  isSecure(): boolean
  newLink(): string
}

/** `serviceUrl`: under which browsers reach the service, known once it listens. */
export function openDemo({
  clock,
  random,
  workspace,
  serviceUrl,
}: {
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
  readonly workspace: string
  readonly serviceUrl: () => string
}): Demo {
  const access = openDemoAccess(clock, random)
  return {
    access,
    workspace,
    isSecure: () => serviceUrl().startsWith('https:'),
    // Behind `#`, where it reaches neither logs nor other sites.
    newLink: () => `${serviceUrl()}/demo/#token=${access.makeToken()}`,
  }
}

function openDemoAccess(clock: Pick<Clock, 'now'>, random: RandomBytes): DemoAccess {
  const links = openSecrets(LINK_MS)
  const sessions = openSecrets(DEMO_SESSION_MS)

  /** Secrets by their digests: how long a look-up takes tells nothing of them. */
  function openSecrets(lastsMs: number) {
    const ends = new Map<string, number>()
    const digestOf = (text: string) => createHash('sha256').update(text).digest('base64url')
    return {
      make(): string {
        const text = base62(TOKEN_CHARS, random)
        ends.set(digestOf(text), clock.now() + lastsMs)
        const oldest = ends.keys().next().value
        if (ends.size > KEPT_MAX && oldest !== undefined) ends.delete(oldest)
        return text
      },
      has: (text: string): boolean => (ends.get(digestOf(text)) ?? 0) > clock.now(),
      drop: (text: string): void => void ends.delete(digestOf(text)),
    }
  }

  return {
    makeToken: links.make,
    take(token) {
      const opens = links.has(token)
      links.drop(token)
      return opens
    },
    openSession: sessions.make,
    hasSession: sessions.has,
  }
}
