// Members of a workspace, for its admins: who they are, what they may do, and the links by which they join or come back.

import { ApiError } from '../../domain/errors.ts'
import { makeObjectId } from '../../domain/ids.ts'
import { PEOPLE_PER_WORKSPACE_MAX, ROLES } from '../../domain/person.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { isoTime } from '../../events/present.ts'
import { WEEK_MS } from '../../lib/durations.ts'
import { must } from '../../lib/must.ts'
import { listPeople, readPerson, type StoredPerson } from '../../records/people.ts'
import { type ApiRoute, type SignedInCall, signedIn } from '../routes.ts'
import { submitted } from './account.ts'
import { type EntranceNeeds, email, personName, readEmail } from './entrance.ts'
import { joinLink, makeInvitation } from './links.ts'
import { presentMember } from './present.ts'

export interface MembersNeeds extends Pick<EntranceNeeds, 'kv' | 'submit' | 'sessions' | 'clock' | 'random'> {
  /** Where the console is, without a path. */
  readonly address: () => string
  readonly peopleMax?: number
}

const INVITATION_MS = WEEK_MS
const role = oneOf(ROLES)
const InviteBody = Type.Object({ email, name: Type.Optional(personName), role }, strict)
const RoleBody = Type.Object({ role }, strict)

export function memberRoutes(needs: MembersNeeds): ApiRoute[] {
  const { kv, submit, sessions, clock, random, address, peopleMax = PEOPLE_PER_WORKSPACE_MAX } = needs

  const placeOf = ({ caller: { signedIn: by } }: Pick<SignedInCall, 'caller'>) => ({
    workspace: by.person.workspace,
    env: null,
    actor: by.person.id,
  })

  async function existing({ caller, params }: Pick<SignedInCall, 'caller' | 'params'>): Promise<StoredPerson> {
    const { memberId = '' } = params
    const person = /^per_[A-Za-z0-9]{20}$/.test(memberId) ? await readPerson(kv, memberId) : null
    if (person === null || person.workspace !== caller.workspace.id) throw new ApiError('not_found')
    return person
  }

  const shown = async (person: StoredPerson) => presentMember(person, await sessions.list(person.id))
  const current = async (id: string) => shown(must(await readPerson(kv, id), 'whoever has just been written'))

  function invitation(id: string) {
    const made = makeInvitation(id, random)
    const expiresAt = clock.now() + INVITATION_MS
    const told = { link: joinLink(address(), made), expiresAt: isoTime(expiresAt) }
    return { stored: { digest: made.digest, expiresAt }, told }
  }

  return [
    signedIn({
      method: 'GET',
      path: '/console/api/members',
      leastRole: 'admin',
      async handle({ caller }) {
        const people = await listPeople(kv, caller.workspace.id)
        const data = await Promise.all(people.sort((a, b) => a.createdAt - b.createdAt).map(shown))
        return { body: { data, total: data.length } }
      },
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/members',
      leastRole: 'admin',
      body: InviteBody,
      async handle(call) {
        const asked = readEmail(call.body.email)
        const id = makeObjectId('per', random)
        const { stored, told } = invitation(id)
        const name = call.body.name ?? asked.slice(0, asked.indexOf('@'))
        const data = {
          ...{ id, email: asked, name, role: call.body.role },
          ...{ password: null, invitation: stored, peopleMax, isFirst: false },
        }
        await submitted(submit, { type: 'person.create', ...placeOf(call), data })
        return { status: 201, body: { member: await current(id), ...told } }
      },
    }),

    signedIn({
      method: 'PATCH',
      path: '/console/api/members/:memberId',
      leastRole: 'admin',
      body: RoleBody,
      async handle(call) {
        const { id } = await existing(call)
        await submitted(submit, { type: 'person.update', ...placeOf(call), data: { id, role: call.body.role } })
        return { body: { member: await current(id) } }
      },
    }),

    signedIn({
      method: 'POST',
      path: '/console/api/members/:memberId/link',
      leastRole: 'admin',
      async handle(call) {
        const { id } = await existing(call)
        const { stored, told } = invitation(id)
        const data = { id, action: 'invite', access: { invitation: stored } } as const
        await submitted(submit, { type: 'person.access', ...placeOf(call), data })
        return { body: { member: await current(id), ...told } }
      },
    }),

    signedIn({
      method: 'DELETE',
      path: '/console/api/members/:memberId',
      leastRole: 'admin',
      async handle(call) {
        const { id } = await existing(call)
        await submitted(submit, { type: 'person.remove', ...placeOf(call), data: { id } })
        await sessions.end(id, () => true)
        return { body: { deleted: true, memberId: id } }
      },
    }),
  ]
}
