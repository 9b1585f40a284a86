// What every way in ends with: a session of its own, whatever cookie came with the request.

import type { StoredPerson } from '../../records/people.ts'
import type { RouteCall, RouteReply } from '../routes.ts'
import type { SignInLimits } from './attempts.ts'
import type { Cookies } from './cookies.ts'
import { presentSession, type SessionPresentation } from './present.ts'
import type { Sessions } from './sessions.ts'

export interface EnterNeeds extends SessionPresentation {
  readonly sessions: Pick<Sessions, 'find' | 'end' | 'open'>
  readonly cookies: Cookies
  readonly attempts: Pick<SignInLimits, 'makeDevice'>
}

/** What the cookies and the guard of a request without a session need. */
export const ENTRANCE_HEADERS = ['cookie', 'host', 'origin', 'sec-fetch-site', 'user-agent']

/** A cookie of before is worth nothing from now on. */
export async function enterConsole(
  needs: EnterNeeds,
  call: Pick<RouteCall, 'header' | 'address'>,
  person: StoredPerson,
  status = 200,
): Promise<RouteReply> {
  const { sessions, cookies, attempts } = needs
  const before = await sessions.find(cookies.session(call.header('cookie')))
  if (before !== null) await sessions.end(before.personId, ({ id }) => id === before.id)
  const from = { address: call.address, userAgent: call.header('user-agent') }
  const opened = await sessions.open(person, from)
  return {
    status,
    headers: cookies.set(opened.token, attempts.makeDevice(person.email)),
    body: presentSession(opened, person, needs),
  }
}
