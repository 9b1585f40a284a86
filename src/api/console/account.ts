// What people who are signed in do about themselves: their sessions, name, password and authenticator.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import { strict, Type } from '../../domain/schema.ts'
import { must } from '../../lib/must.ts'
import { readPerson, type StoredPerson } from '../../records/people.ts'
import type { PersonAccess } from '../../records/person-commands.ts'
import { type ApiRoute, type RouteReply, type SignedInCall, signedIn } from '../routes.ts'
import { code, type EntranceNeeds, newPassword, password, personName } from './entrance.ts'
import { presentListedSession, presentPerson, presentSession } from './present.ts'
import { totpUri } from './totp.ts'

export type AccountNeeds = Pick<
  EntranceNeeds,
  'kv' | 'submit' | 'sessions' | 'cookies' | 'attempts' | 'passwords' | 'authenticators' | 'directory' | 'serviceUrl'
>

const NameBody = Type.Object({ name: personName }, strict)
const PasswordBody = Type.Object({ current: password, password: newPassword }, strict)
const AgainBody = Type.Object({ password }, strict)
const CodeBody = Type.Object({ code }, strict)
const HEADERS = ['user-agent']

const personPlace = ({ workspace, id }: StoredPerson) => ({ workspace, env: null, actor: id })
export const submitted = async (submit: Submitter['submit'], draft: Parameters<Submitter['submit']>[0]) =>
  accepted(await submit(draft))

export function accountRoutes(needs: AccountNeeds): ApiRoute[] {
  const { kv, submit, sessions, cookies, attempts, passwords, authenticators } = needs

  /** Whoever only found the screen unlocked does not know it. */
  async function sayAgain(person: StoredPerson, text: string): Promise<void> {
    await attempts.again(person.id)
    if (!(await passwords.verify(text, person.password))) throw new ApiError('sign_in_failed')
  }

  /** Changes a way in; every session of before is over, and this browser has a new one. */
  async function change(
    { caller, address, header }: Pick<SignedInCall, 'caller' | 'address' | 'header'>,
    action: 'password' | 'authenticator',
    access: PersonAccess,
  ): Promise<RouteReply> {
    const { person } = caller.signedIn
    await submitted(submit, { type: 'person.access', ...personPlace(person), data: { id: person.id, action, access } })
    await sessions.end(person.id, () => true)
    const now = must(await readPerson(kv, person.id), 'whoever has just changed')
    const opened = await sessions.open(now, { address, userAgent: header('user-agent') })
    return { headers: cookies.setSession(opened.token), body: presentSession(opened, now, needs) }
  }

  return [
    signedIn({
      method: 'GET',
      path: '/console/api/session',
      csrf: false,
      handle: ({ caller: { signedIn: by } }) => ({ body: presentSession(by, by.person, needs) }),
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/sign-out',
      async handle({ caller: { signedIn: by } }) {
        await sessions.end(by.person.id, ({ id }) => id === by.session.id)
        return { headers: cookies.clear(), body: { signedOut: true } }
      },
    }),

    signedIn({
      method: 'GET',
      path: '/console/api/sessions',
      async handle({ caller: { signedIn: by } }) {
        const found = await sessions.list(by.person.id)
        const data = found.sort((a, b) => b.seenAt - a.seenAt).map((one) => presentListedSession(one, by.session.id))
        return { body: { data, total: data.length } }
      },
    }),

    signedIn({
      method: 'DELETE',
      path: '/console/api/sessions/:sessionId',
      async handle({ caller: { signedIn: by }, params: { sessionId } }) {
        if ((await sessions.end(by.person.id, ({ id }) => id === sessionId)) === 0) throw new ApiError('not_found')
        return { body: { deleted: true, sessionId } }
      },
    }),

    signedIn({
      method: 'DELETE',
      path: '/console/api/sessions',
      handle: async ({ caller: { signedIn: by } }) => ({
        body: { deleted: await sessions.end(by.person.id, ({ id }) => id !== by.session.id) },
      }),
    }),

    signedIn({
      method: 'PATCH',
      path: '/console/api/me',
      body: NameBody,
      async handle({ caller: { signedIn: by }, body: { name } }) {
        const { person } = by
        await submitted(submit, { type: 'person.update', ...personPlace(person), data: { id: person.id, name } })
        return { body: { person: presentPerson({ ...person, name }) } }
      },
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/password',
      headers: HEADERS,
      body: PasswordBody,
      async handle(call) {
        await sayAgain(call.caller.signedIn.person, call.body.current)
        return change(call, 'password', { password: await passwords.hash(call.body.password) })
      },
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/totp',
      body: AgainBody,
      async handle({ caller: { signedIn: by }, body }) {
        await sayAgain(by.person, body.password)
        if (by.person.totp !== null) throw new ApiError('conflict', { message: 'Remove the authenticator first.' })
        const secret = await authenticators.begin(by.person.id)
        return { body: { secret, uri: totpUri(secret, by.person.email) } }
      },
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/totp/confirm',
      headers: HEADERS,
      body: CodeBody,
      async handle(call) {
        const { person } = call.caller.signedIn
        await attempts.again(person.id)
        const totp = await authenticators.confirm(person.id, call.body.code)
        if (totp === null) throw new ApiError('sign_in_failed')
        return change(call, 'authenticator', { totp })
      },
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/totp/remove',
      headers: HEADERS,
      body: AgainBody,
      async handle(call) {
        await sayAgain(call.caller.signedIn.person, call.body.password)
        return change(call, 'authenticator', { totp: null })
      },
    }),
  ]
}
