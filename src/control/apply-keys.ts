// Commands about API keys. A key is found by its digest, and a digest that was ever used is never accepted again.

import type { Env } from '../domain/event.ts'
import type { ApiKey } from '../domain/workspace.ts'
import type { Put } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import type { AuditDraft } from '../records/audit.ts'
import type { Command, KeyToMake } from '../records/commands.ts'
import { isLive, KEY_DIGEST, KEYS_VERSION, keyKey, listKeys } from '../records/keys.ts'
import { SYSTEM } from '../records/scopes.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'

export async function applyKeyCreate(command: CommandOf<'key.create'>, seq: number, read: Read): Promise<Change> {
  return addKey(command, seq, read, () => false)
}

export async function applyKeyRotate(command: CommandOf<'key.rotate'>, seq: number, read: Read): Promise<Change> {
  const { kind } = command.data.key
  return addKey(command, seq, read, (key) => key.kind === kind && key.env === command.env)
}

export async function applyKeyRevoke(command: CommandOf<'key.revoke'>, seq: number, read: Read): Promise<Change> {
  const [entry] = await read.get<ApiKey>(SYSTEM, [keyKey(command.workspace, command.data.id)])
  if (!entry || entry.value.revokedAt !== null) return refuse(seq, 'not_found')
  const before = entry.value
  const after = { ...before, revokedAt: command.at }
  return changed(command, seq, [after], {
    revoked: [before.id],
    audit: { resource: 'key', id: before.id, action: 'revoke', before: shownOf(before), after: shownOf(after) },
    env: before.env,
  })
}

async function addKey(
  command: CommandOf<'key.create' | 'key.rotate'>,
  seq: number,
  read: Read,
  replaces: (key: ApiKey) => boolean,
): Promise<Change> {
  const { workspace, at } = command
  const { key, keysMax } = command.data
  if ((await readWorkspace(read, workspace)) === null) return refuse(seq, 'not_found')
  const [digest, id] = await read.get(SYSTEM, [[KEY_DIGEST, key.digest], keyKey(workspace, key.id)])
  const keys = await listKeys(read, workspace)
  const same = keys.find((old) => old.id === key.id && old.digest === key.digest && old.revokedAt === null)
  if (same !== undefined) {
    // Asked for once more, because nobody knew what had become of it.
    const revoked = keys.filter((old) => old.revokedAt === same.createdAt && replaces(old)).map((old) => old.id)
    return { outcome: { ok: true, seq, at: same.createdAt, revoked }, effects: [] }
  }
  if (digest || id) return refuse(seq, 'conflict', 'This key exists already or was revoked.')
  const ended = keys.filter((old) => old.revokedAt === null && replaces(old))
  const staying = keys.filter((old) => isLive(old, at) && !ended.includes(old))
  if (staying.length >= keysMax) {
    return refuse(seq, 'resource_limit_reached', `A workspace may have at most ${keysMax} keys.`)
  }
  const added = complete(key, workspace, must(command.env, 'an environment'), at)
  const index: Put = { key: [KEY_DIGEST, key.digest], value: { workspace, id: key.id } }
  const revoked = ended.map((old) => ({ ...old, revokedAt: at }))
  const ids = revoked.map(({ id }) => id)
  const action = command.type.slice('key.'.length)
  const after = { ...shownOf(added), ...(command.type === 'key.rotate' ? { revoked: ids } : {}) }
  return changed(command, seq, [added, ...revoked], {
    revoked: ids,
    audit: { resource: 'key', id: key.id, action, before: null, after },
    env: added.env,
    more: [index],
  })
}

/** Without what it is found by. */
const shownOf = ({ digest: _, workspace: __, ...shown }: ApiKey) => shown

const complete = (key: KeyToMake, workspace: string, env: Env, at: number): ApiKey => ({
  ...key,
  workspace,
  env,
  createdAt: at,
  revokedAt: null,
})

const changed = (
  { at }: Command,
  seq: number,
  keys: readonly ApiKey[],
  {
    revoked,
    audit,
    env,
    more = [],
  }: {
    readonly revoked: readonly string[]
    readonly audit: AuditDraft
    readonly env: Env
    readonly more?: readonly Put[]
  },
): Change => ({
  outcome: { ok: true, seq, at, revoked },
  effects: [
    {
      scope: SYSTEM,
      put: [
        ...keys.map((key) => ({ key: keyKey(key.workspace, key.id), value: key })),
        ...more,
        { key: KEYS_VERSION, value: { seq } },
      ],
    },
  ],
  keysChanged: true,
  audit,
  auditEnvs: [env],
})
