// Signing in with an OpenID provider: the way there, and back with a code. It lets in people whom an admin has added by the e-mail that the
// provider vouches for, and, where domains are named, others of those; what does not fit is refused with nothing created.

import { DEFAULT_WORKSPACE } from '../../control/bootstrap.ts'
import { accepted } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import { base62, makeObjectId } from '../../domain/ids.ts'
import {
  EMAIL_CHARS_MAX,
  isEmail,
  normalEmail,
  PEOPLE_PER_WORKSPACE_MAX,
  PERSON_NAME_CHARS_MAX,
} from '../../domain/person.ts'
import { strict, Type } from '../../domain/schema.ts'
import type { KvKey } from '../../kv/kv.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { Unavailable, Unreadable } from '../../lib/failures.ts'
import type { Logger } from '../../lib/logger.ts'
import { must } from '../../lib/must.ts'
import type { Sealer } from '../../lib/sealed.ts'
import { findPerson, isSetUp, readPerson, type StoredPerson } from '../../records/people.ts'
import { SUBJECT_CHARS_MAX } from '../../records/person-commands.ts'
import { type ApiRoute, open } from '../routes.ts'
import { ENTRANCE_HEADERS, enterConsole } from './enter.ts'
import type { EntranceNeeds } from './entrance.ts'
import type { OidcSettings, Provider, Trip, Vouched } from './provider.ts'
import { CONSOLE_SCOPE } from './sessions.ts'
import { Untrusted } from './untrusted.ts'

export interface OidcNeeds extends Omit<EntranceNeeds, 'oidc' | 'passwords' | 'authenticators' | 'sealer'> {
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly oidc: OidcSettings
  /** Where the console is, without a path. */
  readonly address: () => string
  readonly logger: Pick<Logger, 'warn'>
}

const TRIP_MS = 10 * MINUTE_MS
const SECRET_CHARS = 43
const CONTEXT = 'console/oidc'
const RETRY_AFTER_SECONDS = 5
const NOBODY = 'Nobody with your e-mail has been added here. Ask an admin of the console.'
const UNVERIFIED = 'The provider does not vouch for your e-mail.'
const OTHER = 'This e-mail came in with another account before. Ask an admin to remove and add you.'

const ReturnBody = Type.Object(
  {
    code: Type.String({ minLength: 1, maxLength: 4_096 }),
    state: Type.String({ minLength: 1, maxLength: 100 }),
    iss: Type.Optional(Type.String({ maxLength: 2_048 })),
  },
  strict,
)

interface StoredTrip extends Trip {
  readonly beganAt: number
}

export function oidcRoutes(needs: OidcNeeds): ApiRoute[] {
  const { kv, submit, guard, cookies, attempts, sealer, clock, random, logger, oidc, address } = needs
  let opened: Promise<Provider> | null = null
  /** Loaded with the first sign-in: most consoles have no provider. */
  const provider = (): Promise<Provider> => {
    opened ??= import('./provider.ts').then(({ openProvider }) => openProvider(oidc, clock))
    return opened
  }
  const returnTo = () => `${address()}/console/oidc`
  const secret = () => base62(SECRET_CHARS, random)

  const refused = (why: string, message?: string): ApiError => {
    logger.warn({ why }, 'a sign-in with the provider was refused')
    return new ApiError('sign_in_failed', message === undefined ? {} : { message })
  }

  function readTrip(cookie: string, state: string): StoredTrip {
    if (cookie === '') throw refused('the browser began no sign-in here')
    try {
      const trip = JSON.parse(sealer.open(cookie, CONTEXT)) as StoredTrip
      if (trip.state !== state) throw refused('the state is of another sign-in')
      if (trip.beganAt + TRIP_MS <= clock.now()) throw refused('the sign-in began too long ago')
      return trip
    } catch (error) {
      if (error instanceof Unreadable) throw refused('the cookie was not made here')
      throw error
    }
  }

  /** Of two that come back with the same one, one is first. */
  async function useUp({ state }: Trip): Promise<void> {
    const key: KvKey = ['oidc-used', state]
    const [isFirst] = await kv.commit([
      { scope: CONSOLE_SCOPE, check: [[key, null]], put: [{ key, value: true, ttlMs: TRIP_MS }] },
    ])
    if (isFirst !== true) throw refused('the browser came back with this before')
  }

  /** Throws sign_in_failed for whoever is not to come in. */
  async function personOf({ account, email: told, isVerified, name }: Vouched): Promise<StoredPerson> {
    if (told === null || !isVerified) throw refused('the e-mail is missing or not verified', UNVERIFIED)
    const email = normalEmail(told)
    const fits = isEmail(email) && email.length <= EMAIL_CHARS_MAX && account.subject.length <= SUBJECT_CHARS_MAX
    // The first person is an admin, and comes in by the setup link.
    if (!fits || !(await isSetUp(kv))) throw refused('nobody is set up, or this is no e-mail', NOBODY)
    const known = await findPerson(kv, email)
    if (known === null) return admit(email, account, name)
    if (known.oidc?.issuer === account.issuer) {
      if (known.oidc.subject !== account.subject) throw refused('the e-mail is of another account', OTHER)
      return known
    }
    const data = { id: known.id, action: 'oidc', access: { oidc: account, invitation: null } } as const
    const place = { workspace: known.workspace, env: null, actor: known.id }
    accepted(await submit({ type: 'person.access', ...place, data }))
    return must(await readPerson(kv, known.id), 'whoever has just come in')
  }

  async function admit(email: string, account: Vouched['account'], name: string | null): Promise<StoredPerson> {
    const at = email.lastIndexOf('@')
    if (!oidc.domains.includes(email.slice(at + 1))) throw refused('nobody has this e-mail', NOBODY)
    const id = makeObjectId('per', random)
    const data = {
      ...{
        id,
        email,
        name: (name ?? email.slice(0, at)).slice(0, PERSON_NAME_CHARS_MAX),
        role: oidc.role,
        oidc: account,
      },
      ...{ password: null, invitation: null, peopleMax: PEOPLE_PER_WORKSPACE_MAX, isFirst: false },
    }
    accepted(await submit({ type: 'person.create', workspace: DEFAULT_WORKSPACE, env: null, actor: id, data }))
    return must(await readPerson(kv, id), 'whoever has just come in')
  }

  const answering = async <T>(asked: Promise<T>): Promise<T> => {
    try {
      return await asked
    } catch (error) {
      if (error instanceof Untrusted) throw refused(error.message)
      if (!(error instanceof Unavailable)) throw error
      logger.warn({ error }, 'the provider of sign-ins does not answer')
      const message = 'The provider of sign-ins does not answer. Try again, or sign in with a password.'
      throw new ApiError('unavailable', { message, retryAfter: RETRY_AFTER_SECONDS })
    }
  }

  return [
    open({
      method: 'POST',
      path: '/console/api/oidc',
      headers: ENTRANCE_HEADERS,
      async handle(call) {
        guard.refuseForeign(call.header)
        await attempts.link(call.address)
        const trip: StoredTrip = { state: secret(), nonce: secret(), verifier: secret(), beganAt: clock.now() }
        const url = await answering((await provider()).signInAt(trip, returnTo()))
        return { headers: cookies.setTrip(sealer.seal(JSON.stringify(trip), CONTEXT), TRIP_MS / 1_000), body: { url } }
      },
    }),

    open({
      method: 'POST',
      path: '/console/api/oidc/return',
      headers: ENTRANCE_HEADERS,
      body: ReturnBody,
      async handle(call) {
        guard.refuseForeign(call.header)
        await attempts.link(call.address)
        const trip = readTrip(cookies.trip(call.header('cookie')), call.body.state)
        await useUp(trip)
        const vouched = await answering((await provider()).whoIs(call.body, trip, returnTo()))
        const entered = await enterConsole(needs, call, await personOf(vouched))
        return { ...entered, headers: [...(entered.headers ?? []), ...cookies.clearTrip()] }
      },
    }),
  ]
}
