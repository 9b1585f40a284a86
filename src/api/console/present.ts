// What the console is told of people and sessions.

import { ApiError } from '../../domain/errors.ts'
import { scopesOfRole } from '../../domain/person.ts'
import { isoTime } from '../../events/present.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import { hasJoined, type StoredPerson } from '../../records/people.ts'
import { csrfOf, endOf, idleEndOf, type OpenedSession, type Session } from './sessions.ts'

export const presentPerson = ({ id, email, name, role, totp }: StoredPerson) => ({
  ...{ id, email, name, role },
  totp: totp !== null,
})

export interface SessionPresentation {
  readonly directory: Pick<KeyDirectory, 'workspace'>
  /** Where SDKs and back ends reach the service. */
  readonly serviceUrl: () => string
}

/** Throws unavailable while this process has not heard of the workspace. */
export function presentSession(
  { session, token }: OpenedSession,
  person: StoredPerson,
  { directory, serviceUrl }: SessionPresentation,
) {
  const workspace = directory.workspace(person.workspace)
  if (workspace === null) throw new ApiError('unavailable', { retryAfter: 1 })
  const { id, name, plan, apiVersion } = workspace
  const { createdAt, idleExpiresAt, expiresAt } = timesOf(session)
  return {
    person: presentPerson(person),
    session: { id: session.id, createdAt, idleExpiresAt, expiresAt },
    csrf: csrfOf(token),
    scopes: scopesOfRole(person.role),
    workspace: { id, name, plan, apiVersion },
    serviceUrl: serviceUrl(),
  }
}

const timesOf = (session: Session) => ({
  createdAt: isoTime(session.createdAt),
  lastSeenAt: isoTime(session.seenAt),
  idleExpiresAt: isoTime(idleEndOf(session)),
  expiresAt: isoTime(endOf(session)),
})

export const presentListedSession = (session: Session, current: string) => ({
  id: session.id,
  ...timesOf(session),
  address: session.address,
  userAgent: session.userAgent,
  current: session.id === current,
})

export const presentMember = (person: StoredPerson, sessions: readonly Session[]) => {
  const seenAt = Math.max(0, ...sessions.map(({ seenAt }) => seenAt))
  return {
    ...presentPerson(person),
    status: hasJoined(person) ? 'active' : 'invited',
    createdAt: isoTime(person.createdAt),
    lastSeenAt: seenAt === 0 ? null : isoTime(seenAt),
  }
}

/** As the audit log has it. */
export const presentAuditedPerson = (person: { readonly createdAt: number; readonly removedAt: number | null }) => ({
  ...person,
  createdAt: isoTime(person.createdAt),
  removedAt: person.removedAt === null ? null : isoTime(person.removedAt),
})
