// Sessions of the console in the kv, under the digest of what is in the cookie: made at sign-in, kept alive by requests, over after
// idleness or a week, listed and ended by whose they are.

import { createHash } from 'node:crypto'
import { base62, makeObjectId, type RandomBytes } from '../../domain/ids.ts'
import type { Kv, KvEntry, KvKey, Put } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { StoredPerson } from '../../records/people.ts'
import { scanAll, under } from '../../records/scopes.ts'

export const CONSOLE_SCOPE = 'console'
export const IDLE_MS = 12 * HOUR_MS
export const SESSION_MS = 7 * DAY_MS
/** A request writes that it was there no more often. */
const TOUCH_MS = MINUTE_MS
const TOKEN_CHARS = 43
const SESSIONS_PER_PERSON_MAX = 50
const USER_AGENT_CHARS_MAX = 300

export interface Session {
  readonly id: string
  readonly personId: string
  /** Of the password it was begun with: it is over once there is another. */
  readonly passwordAt: number
  readonly createdAt: number
  readonly seenAt: number
  readonly address: string
  readonly userAgent: string
}

export interface OpenedSession {
  readonly session: Session
  /** For the cookie; it is stored nowhere. */
  readonly token: string
}

export interface Sessions {
  open(
    person: Pick<StoredPerson, 'id' | 'passwordAt'>,
    from: { readonly address: string; readonly userAgent: string },
  ): Promise<OpenedSession>
  /** null: it was never made, is over, or was ended. */
  find(token: string): Promise<Session | null>
  /** The same for a request, which keeps it alive. */
  use(token: string): Promise<Session | null>
  list(personId: string): Promise<Session[]>
  /** How many there were of them. */
  end(personId: string, which: (session: Session) => boolean): Promise<number>
}

const digestOf = (token: string): string => createHash('sha256').update(token).digest('hex')
const sessionKey = (digest: string): KvKey => ['session', digest]
const SESSION_OF = 'session-of'
const placeKey = (personId: string, digest: string): KvKey => [SESSION_OF, `${personId}/${digest}`]

/** Follows from the cookie, so that whoever sends it has been told it by a page of this origin. */
export const csrfOf = (token: string): string => createHash('sha256').update(`csrf\0${token}`).digest('base64url')

export const idleEndOf = ({ seenAt, createdAt }: Session): number => Math.min(seenAt + IDLE_MS, endOf({ createdAt }))
export const endOf = ({ createdAt }: Pick<Session, 'createdAt'>): number => createdAt + SESSION_MS

export function openSessions(
  kv: Pick<Kv, 'get' | 'scan' | 'commit'>,
  clock: Pick<Clock, 'now'>,
  random: RandomBytes,
): Sessions {
  const isOver = (session: Session) => clock.now() >= idleEndOf(session)

  function puts(session: Session, digest: string): Put[] {
    const ttlMs = Math.max(1, idleEndOf(session) - clock.now())
    return [
      { key: sessionKey(digest), value: session, ttlMs },
      { key: placeKey(session.personId, digest), value: true, ttlMs },
    ]
  }

  async function entryOf(digest: string): Promise<KvEntry<Session> | null> {
    const [entry] = await kv.get<Session>(CONSOLE_SCOPE, [sessionKey(digest)])
    return entry == null || isOver(entry.value) ? null : entry
  }

  async function entriesOf(personId: string): Promise<KvEntry<Session>[]> {
    const digests: string[] = []
    for await (const { key } of scanAll(kv, CONSOLE_SCOPE, SESSION_OF, under(personId))) {
      digests.push(key[1].slice(personId.length + 1))
    }
    const found = digests.length === 0 ? [] : await kv.get<Session>(CONSOLE_SCOPE, digests.map(sessionKey))
    return found.filter((entry) => entry !== null && !isOver(entry.value)) as KvEntry<Session>[]
  }

  const drop = (entries: readonly KvEntry<Session>[]) =>
    kv.commit(
      entries.length === 0
        ? []
        : [
            {
              scope: CONSOLE_SCOPE,
              drop: entries.flatMap(({ key, value }) => [key, placeKey(value.personId, key[1])]),
            },
          ],
    )

  return {
    async open({ id: personId, passwordAt }, { address, userAgent }) {
      const now = clock.now()
      const token = base62(TOKEN_CHARS, random)
      const session: Session = {
        ...{ id: makeObjectId('ses', random), personId, passwordAt, createdAt: now, seenAt: now, address },
        userAgent: userAgent.slice(0, USER_AGENT_CHARS_MAX),
      }
      const others = (await entriesOf(personId)).sort((a, b) => b.value.seenAt - a.value.seenAt)
      await drop(others.slice(SESSIONS_PER_PERSON_MAX - 1))
      await kv.commit([{ scope: CONSOLE_SCOPE, put: puts(session, digestOf(token)) }])
      return { session, token }
    },

    find: async (token) => (await entryOf(digestOf(token)))?.value ?? null,

    async use(token) {
      const digest = digestOf(token)
      const entry = await entryOf(digest)
      if (entry === null) return null
      const now = clock.now()
      if (now - entry.value.seenAt < TOUCH_MS) return entry.value
      const seen = { ...entry.value, seenAt: now }
      // Refused when another request was faster, or when it was ended meanwhile.
      await kv.commit([{ scope: CONSOLE_SCOPE, check: [[entry.key, entry.version]], put: puts(seen, digest) }])
      return seen
    },

    list: async (personId) => (await entriesOf(personId)).map(({ value }) => value),

    async end(personId, which) {
      const ended = (await entriesOf(personId)).filter(({ value }) => which(value))
      await drop(ended)
      return ended.length
    },
  }
}
