// People in the kv: records by id, an index by e-mail. Only the owner of `changes` writes them. Whoever was removed keeps a record
// with the name alone, so that the audit log can tell who it was.

import { hash } from 'node:crypto'
import type { Role } from '../domain/person.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { SYSTEM, scanAll } from './scopes.ts'

/** Of somebody who may choose a password with a link. */
export interface Invitation {
  /** SHA-256 of the secret in the link, hex. */
  readonly digest: string
  readonly expiresAt: number
}

/** Who somebody is for a provider of OpenID Connect. */
export interface ProviderAccount {
  readonly issuer: string
  /** The provider's `sub`, which it gives nobody else. */
  readonly subject: string
}

export interface StoredPerson {
  readonly id: string
  readonly workspace: string
  /** As `normalEmail` has it; '' of somebody who was removed. */
  readonly email: string
  readonly name: string
  readonly role: Role
  readonly createdAt: number
  /** As passwords.ts writes it; null: none was chosen yet. */
  readonly password: string | null
  /** When the password was chosen: links of before are used up, and sessions begun with another are over. */
  readonly passwordAt: number
  /** The secret of an authenticator, sealed. */
  readonly totp: string | null
  readonly invitation: Invitation | null
  /** With which account the person came in by OpenID Connect; absent: never. */
  readonly oidc?: ProviderAccount
  readonly removedAt: number | null
}

const PERSON = 'person'
export const personKey = (id: string): KvKey => [PERSON, id]
/** By digest: an e-mail may be longer than a key. */
export const personEmailKey = (email: string): KvKey => ['person-email', hash('sha256', email, 'hex')]

/** null also for whoever was removed. */
export async function readPerson(kv: Pick<Kv, 'get'>, id: string): Promise<StoredPerson | null> {
  const [entry] = await kv.get<StoredPerson>(SYSTEM, [personKey(id)])
  return entry == null || entry.value.removedAt !== null ? null : entry.value
}

/** The name of a person who is or was here. */
export async function readPersonName(kv: Pick<Kv, 'get'>, id: string): Promise<string | null> {
  const [entry] = await kv.get<StoredPerson>(SYSTEM, [personKey(id)])
  return entry?.value.name ?? null
}

export async function findPerson(kv: Pick<Kv, 'get'>, email: string): Promise<StoredPerson | null> {
  const [entry] = await kv.get<string>(SYSTEM, [personEmailKey(email)])
  return entry == null ? null : readPerson(kv, entry.value)
}

/** Those who are here, in the order of their ids; null: of every workspace. */
export async function listPeople(kv: Pick<Kv, 'scan'>, workspace: string | null): Promise<StoredPerson[]> {
  const found: StoredPerson[] = []
  for await (const { value } of scanAll<StoredPerson>(kv, SYSTEM, PERSON)) {
    if (value.removedAt === null && (workspace === null || value.workspace === workspace)) found.push(value)
  }
  return found
}

/** Whether somebody has a way in besides an invitation. */
export const hasJoined = ({ password, oidc }: Pick<StoredPerson, 'password' | 'oidc'>): boolean =>
  password !== null || oidc !== undefined

/** Whether anybody has a way in: the first one is set up. */
export const isSetUp = async (kv: Pick<Kv, 'scan'>): Promise<boolean> => (await listPeople(kv, null)).some(hasJoined)
