// Who did what an audit entry tells of, as answers show it.

import type { Static } from '../domain/schema.ts'
import type { ApiKey } from '../domain/workspace.ts'
import type { Kv } from '../kv/kv.ts'
import { keyKey } from '../records/keys.ts'
import { readPersonName } from '../records/people.ts'
import { SYSTEM } from '../records/scopes.ts'
import type { AuditEntry } from './rules/trial-docs.ts'

export type Actor = Pick<Static<typeof AuditEntry>, 'actor' | 'by'>

export type ActorOf = (actor: string) => Promise<Actor>

const PARTS: Readonly<Record<string, Actor['by']['type']>> = { operator: 'operator', rules: 'rule' }

function typeOf(actor: string): Actor['by']['type'] {
  if (actor.startsWith('key_')) return 'key'
  return actor.startsWith('per_') ? 'person' : (PARTS[actor] ?? 'system')
}

/** Keys are known by their last four characters, people and parts of the service by their name. Each is looked up once, however many ask at once. */
export function openActors(kv: Pick<Kv, 'get'>, workspace: string): ActorOf {
  const known = new Map<string, Promise<Actor>>()
  async function find(actor: string): Promise<Actor> {
    const [entry] = actor.startsWith('key_') ? await kv.get<ApiKey>(SYSTEM, [keyKey(workspace, actor)]) : []
    const key = entry?.value
    const label = actor.startsWith('per_') ? await readPersonName(kv, actor) : (key?.label ?? null)
    return {
      actor: key?.last4 ?? (typeOf(actor) === 'person' ? (label ?? actor) : actor),
      by: { type: typeOf(actor), id: actor, label },
    }
  }
  return (actor) => {
    const shown = known.get(actor) ?? find(actor)
    known.set(actor, shown)
    return shown
  }
}
