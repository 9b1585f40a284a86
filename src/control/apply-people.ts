// Commands about people. A workspace that has an admin keeps one, a link works once, and the audit log of both environments tells
// who came, went and changed a way in, without telling an address or a secret.

import { ENVS } from '../domain/event.ts'
import type { KvKey } from '../kv/kv.ts'
import type { AuditDraft } from '../records/audit.ts'
import type { Command } from '../records/commands.ts'
import {
  hasJoined,
  isSetUp,
  listPeople,
  type ProviderAccount,
  personEmailKey,
  personKey,
  type StoredPerson,
} from '../records/people.ts'
import { SYSTEM } from '../records/scopes.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'

export async function applyPersonCreate(command: CommandOf<'person.create'>, seq: number, read: Read): Promise<Change> {
  const { workspace, at, data } = command
  const { id, email, name, role, password, invitation, oidc, peopleMax, isFirst } = data
  if ((await readWorkspace(read, workspace)) === null) return refuse(seq, 'not_found')
  const [known] = await read.get<string>(SYSTEM, [personEmailKey(email)])
  if (known) return refuse(seq, 'conflict', 'Somebody with this e-mail is here already.', 'email')
  if (isFirst && (await isSetUp(read))) return refuse(seq, 'conflict', 'The console is set up already. Sign in.')
  if ((await listPeople(read, workspace)).length >= peopleMax) {
    return refuse(seq, 'resource_limit_reached', `A workspace may have at most ${peopleMax} people.`)
  }
  const person: StoredPerson = {
    ...{ id, workspace, email, name, role, password, invitation },
    ...{ createdAt: at, passwordAt: password === null ? 0 : at, totp: null, removedAt: null },
    ...(oidc === undefined ? {} : { oidc }),
  }
  return changed(command, seq, { before: null, after: person, action: hasJoined(person) ? 'create' : 'invite' }, [
    { key: personEmailKey(email), value: id },
  ])
}

export async function applyPersonUpdate(command: CommandOf<'person.update'>, seq: number, read: Read): Promise<Change> {
  const before = await existing(command, read)
  if (before === null) return refuse(seq, 'not_found')
  const { name = before.name, role = before.role } = command.data
  if (role !== 'admin' && (await isLastAdmin(before, read))) return refuse(seq, 'conflict', LAST_ADMIN)
  return changed(command, seq, { before, after: { ...before, name, role }, action: 'update' })
}

export async function applyPersonAccess(command: CommandOf<'person.access'>, seq: number, read: Read): Promise<Change> {
  const before = await existing(command, read)
  if (before === null) return refuse(seq, 'not_found')
  const { action, access, digest, issuedAt } = command.data
  const { at } = command
  const isOpen = before.invitation?.digest === digest && (before.invitation?.expiresAt ?? 0) > at
  if (digest !== undefined && !isOpen) return refuse(seq, 'sign_in_failed')
  if (issuedAt !== undefined && before.passwordAt >= issuedAt) return refuse(seq, 'sign_in_failed')
  if (access.oidc !== undefined && isOther(before.oidc, access.oidc)) return refuse(seq, 'sign_in_failed')
  const after = { ...before, ...access, ...(access.password === undefined ? {} : { passwordAt: at }) }
  return changed(command, seq, { before, after, action })
}

/** An e-mail that was given to somebody else brings another account; another provider has other accounts for everybody. */
const isOther = (known: ProviderAccount | undefined, came: ProviderAccount): boolean =>
  known !== undefined && known.issuer === came.issuer && known.subject !== came.subject

export async function applyPersonRemove(command: CommandOf<'person.remove'>, seq: number, read: Read): Promise<Change> {
  const before = await existing(command, read)
  if (before === null) return refuse(seq, 'not_found')
  if (await isLastAdmin(before, read)) return refuse(seq, 'conflict', LAST_ADMIN)
  const { oidc: _, ...rest } = before
  const gone = { email: '', password: null, totp: null, invitation: null, removedAt: command.at }
  return changed(
    command,
    seq,
    { before, after: { ...rest, ...gone }, action: 'remove' },
    [],
    [personEmailKey(before.email)],
  )
}

const LAST_ADMIN = 'The last admin can neither leave nor have another role.'

async function existing({ workspace, data }: Command, read: Read): Promise<StoredPerson | null> {
  const [entry] = await read.get<StoredPerson>(SYSTEM, [personKey((data as { readonly id: string }).id)])
  const person = entry?.value
  return person === undefined || person.workspace !== workspace || person.removedAt !== null ? null : person
}

/** Somebody who has only been invited could not let anybody in. */
async function isLastAdmin(person: StoredPerson, read: Read): Promise<boolean> {
  if (person.role !== 'admin' || !hasJoined(person)) return false
  const others = (await listPeople(read, person.workspace)).filter(({ id }) => id !== person.id)
  return !others.some((other) => other.role === 'admin' && hasJoined(other))
}

const shownOf = ({ id, name, role, totp, createdAt, removedAt }: StoredPerson) => ({
  ...{ id, name, role, createdAt },
  authenticator: totp !== null,
  removedAt,
})

function changed(
  { at }: Command,
  seq: number,
  {
    before,
    after,
    action,
  }: { readonly before: StoredPerson | null; readonly after: StoredPerson; readonly action: string },
  more: readonly { readonly key: KvKey; readonly value: unknown }[] = [],
  drop: readonly KvKey[] = [],
): Change {
  const audit: AuditDraft = {
    ...{ resource: 'person', id: after.id, action },
    before: before === null ? null : shownOf(before),
    after: shownOf(after),
  }
  return {
    outcome: { ok: true, seq, at },
    effects: [{ scope: SYSTEM, put: [{ key: personKey(after.id), value: after }, ...more], drop }],
    audit,
    auditEnvs: ENVS,
  }
}
