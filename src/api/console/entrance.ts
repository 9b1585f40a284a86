// The ways into the console: the link that sets it up, a link to join or to choose a new password, and signing in. Every one of them
// that succeeds starts a session of its own.

import { DEFAULT_WORKSPACE } from '../../control/bootstrap.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { makeObjectId, type RandomBytes } from '../../domain/ids.ts'
import {
  EMAIL_CHARS_MAX,
  isEmail,
  normalEmail,
  PASSWORD_CHARS_MAX,
  PASSWORD_CHARS_MIN,
  PEOPLE_PER_WORKSPACE_MAX,
  PERSON_NAME_CHARS_MAX,
} from '../../domain/person.ts'
import { strict, Type } from '../../domain/schema.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Sealer } from '../../lib/sealed.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import { findPerson, isSetUp, readPerson, type StoredPerson } from '../../records/people.ts'
import { type ApiRoute, open } from '../routes.ts'
import type { SignInLimits } from './attempts.ts'
import type { Authenticators } from './authenticators.ts'
import type { Cookies } from './cookies.ts'
import { ENTRANCE_HEADERS, enterConsole } from './enter.ts'
import type { SessionGuard } from './guard.ts'
import { isSetupToken, LINK_TOKEN_CHARS_MAX, readInvitation, readReset } from './links.ts'
import type { Passwords } from './passwords.ts'
import type { Sessions } from './sessions.ts'

export interface EntranceNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  readonly sessions: Sessions
  readonly guard: Pick<SessionGuard, 'refuseForeign'>
  readonly cookies: Cookies
  readonly attempts: SignInLimits
  readonly passwords: Passwords
  readonly authenticators: Authenticators
  readonly directory: Pick<KeyDirectory, 'workspace'>
  readonly sealer: Pick<Sealer, 'sign'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
  readonly serviceUrl: () => string
  /** null: people sign in with passwords only. */
  readonly oidc: { readonly label: string } | null
}

export const email = Type.String({ minLength: 3, maxLength: EMAIL_CHARS_MAX })
export const personName = Type.String({ minLength: 1, maxLength: PERSON_NAME_CHARS_MAX })
export const newPassword = Type.String({ minLength: PASSWORD_CHARS_MIN, maxLength: PASSWORD_CHARS_MAX })
/** One that is compared may be of any length that a new one could have been. */
export const password = Type.String({ minLength: 1, maxLength: PASSWORD_CHARS_MAX })
export const code = Type.String({ pattern: '^[0-9]{6}$', maxLength: 6 })
const token = Type.String({ minLength: 1, maxLength: LINK_TOKEN_CHARS_MAX })
const SetupBody = Type.Object({ token, email, name: personName, password: newPassword }, strict)
const SignInBody = Type.Object({ email, password, code: Type.Optional(code) }, strict)
const JoinBody = Type.Object({ token, name: Type.Optional(personName), password: newPassword }, strict)

/** Throws validation_error for what is no e-mail. */
export function readEmail(text: string): string {
  const found = normalEmail(text)
  if (!isEmail(found)) throw invalid('email', 'This is no e-mail address.')
  return found
}

export function entranceRoutes(needs: EntranceNeeds): ApiRoute[] {
  const { kv, submit, sessions, guard, cookies, attempts, passwords, authenticators, sealer, clock, random } = needs

  const current = async (id: string): Promise<StoredPerson> => {
    const person = await readPerson(kv, id)
    if (person === null) throw new ApiError('sign_in_failed')
    return person
  }

  /** Whom a link lets in, and what makes that happen once; null: nobody. */
  async function comer(text: string) {
    const reset = readReset(sealer, text, clock.now())
    if (reset !== null) {
      const person = await findPerson(kv, reset.email)
      return person && { person, action: 'reset' as const, only: { issuedAt: reset.issuedAt } }
    }
    const invited = readInvitation(text)
    const person = invited === null ? null : await readPerson(kv, invited.personId)
    return person && { person, action: 'join' as const, only: { digest: invited?.digest ?? '' } }
  }

  return [
    open({
      method: 'GET',
      path: '/console/api/state',
      handle: async () => ({ body: { needsSetup: !(await isSetUp(kv)), oidc: needs.oidc } }),
    }),

    open({
      method: 'POST',
      path: '/console/api/setup',
      headers: ENTRANCE_HEADERS,
      body: SetupBody,
      async handle(call) {
        guard.refuseForeign(call.header)
        const { body } = call
        await attempts.link(call.address)
        if (!isSetupToken(sealer, body.token)) throw new ApiError('sign_in_failed')
        const id = makeObjectId('per', random)
        const data = {
          ...({ id, email: readEmail(body.email), name: body.name, role: 'admin', invitation: null } as const),
          password: await passwords.hash(body.password),
          ...{ peopleMax: PEOPLE_PER_WORKSPACE_MAX, isFirst: true },
        }
        accepted(await submit({ type: 'person.create', workspace: DEFAULT_WORKSPACE, env: null, actor: id, data }))
        return enterConsole(needs, call, await current(id), 201)
      },
    }),

    open({
      method: 'POST',
      path: '/console/api/sign-in',
      headers: ENTRANCE_HEADERS,
      body: SignInBody,
      async handle(call) {
        guard.refuseForeign(call.header)
        const { body } = call
        const asked = normalEmail(body.email)
        await attempts.signIn(asked, call.address, cookies.device(call.header('cookie')))
        const person = await findPerson(kv, asked)
        // As long for somebody unknown, and for somebody who has not joined.
        const isRight = await passwords.verify(body.password, person?.password ?? null)
        if (person === null || !isRight) throw new ApiError('sign_in_failed')
        if (person.totp !== null) {
          if (body.code === undefined) throw new ApiError('code_required')
          if (!(await authenticators.take(person, body.code))) throw new ApiError('sign_in_failed')
        }
        return enterConsole(needs, call, person)
      },
    }),

    open({
      method: 'POST',
      path: '/console/api/join',
      headers: ENTRANCE_HEADERS,
      body: JoinBody,
      async handle(call) {
        guard.refuseForeign(call.header)
        const { body } = call
        await attempts.link(call.address)
        const found = await comer(body.token)
        if (found === null) throw new ApiError('sign_in_failed')
        const { person, action, only } = found
        const access = {
          ...(body.name === undefined ? {} : { name: body.name }),
          ...{ password: await passwords.hash(body.password), totp: null, invitation: null },
        }
        const place = { workspace: person.workspace, env: null, actor: person.id }
        accepted(await submit({ type: 'person.access', ...place, data: { id: person.id, action, access, ...only } }))
        await sessions.end(person.id, () => true)
        return enterConsole(needs, call, await current(person.id))
      },
    }),
  ]
}
