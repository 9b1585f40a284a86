// How the audit log stores objects before and after a change: members that a change left alone once, and long members by their
// digest, so that each of their values is stored once per object however often it comes back.

import { createHash } from 'node:crypto'
import type { Kv, KvKey, Put, Scope } from '../kv/kv.ts'

/** Long members, by object and digest. */
export const AUDIT_PART = 'audit-part'
const INLINE_CHARS_MAX = 1_024
const DIGEST_CHARS = 32

type Members = Readonly<Record<string, unknown>>

interface Packed {
  readonly inline: Members
  /** Digests by name of the member. */
  readonly parts: Readonly<Record<string, string>>
}

export interface PackedChange {
  readonly before: (Packed & { /** Members that `after` has alike. */ readonly same: readonly string[] }) | null
  readonly after: Packed | null
}

export interface AuditChange {
  readonly before: unknown
  readonly after: unknown
}

/** `object`: what parts are kept with, `<kind>/<id>`. */
export function packChange({ before, after }: AuditChange, object: string): { packed: PackedChange; parts: Put[] } {
  const parts = new Map<string, unknown>()
  const written = new Map(
    Object.entries((after ?? {}) as Members).map(([name, value]) => [name, JSON.stringify(value)]),
  )

  function pack(members: readonly (readonly [string, unknown])[]): Packed {
    const inline: Record<string, unknown> = {}
    const long: Record<string, string> = {}
    for (const [name, value] of members) {
      const text = JSON.stringify(value) ?? ''
      if (text.length <= INLINE_CHARS_MAX) inline[name] = value
      else {
        const digest = createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARS)
        long[name] = digest
        parts.set(digest, value)
      }
    }
    return { inline, parts: long }
  }

  const old = Object.entries((before ?? {}) as Members)
  const isSame = ([name, value]: readonly [string, unknown]) =>
    after !== null && written.get(name) !== undefined && written.get(name) === JSON.stringify(value)
  return {
    packed: {
      before:
        before === null
          ? null
          : { ...pack(old.filter((member) => !isSame(member))), same: old.filter(isSame).map(([name]) => name) },
      after: after === null ? null : pack(Object.entries(after as Members)),
    },
    parts: [...parts].map(([digest, value]) => ({ key: partKey(object, digest), value })),
  }
}

const partKey = (object: string, digest: string): KvKey => [AUDIT_PART, `${object}/${digest}`]

export type ReadChange = (packed: PackedChange, object: string) => Promise<AuditChange>

/** Reads each part once, so that objects of several changes share what they have in common. */
export function openChangeReader(kv: Pick<Kv, 'get'>, scope: Scope): ReadChange {
  const known = new Map<string, unknown>()

  async function load(packed: PackedChange, object: string): Promise<void> {
    const digests = [packed.before, packed.after].flatMap((side) => (side === null ? [] : Object.values(side.parts)))
    const lacking = [...new Set(digests)].filter((digest) => !known.has(`${object}/${digest}`))
    // One by one: each may be long.
    for (const digest of lacking) {
      const [entry] = await kv.get(scope, [partKey(object, digest)])
      known.set(`${object}/${digest}`, entry?.value ?? null)
    }
  }

  const membersOf = ({ inline, parts }: Packed, object: string): Record<string, unknown> => ({
    ...inline,
    ...Object.fromEntries(Object.entries(parts).map(([name, digest]) => [name, known.get(`${object}/${digest}`)])),
  })

  return async (packed, object) => {
    await load(packed, object)
    const { before, after } = packed
    const now = after === null ? null : membersOf(after, object)
    if (before === null) return { before: null, after: now }
    const kept = before.same.map((name) => [name, now?.[name]])
    return { before: { ...Object.fromEntries(kept), ...membersOf(before, object) }, after: now }
  }
}
