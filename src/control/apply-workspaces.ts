// Commands about workspaces. Each also touches both environments, whose rulesets hold a copy of the workspace.

import { ENVS } from '../domain/event.ts'
import type { Workspace, WorkspaceSettingsChange } from '../domain/workspace.ts'
import type { Command } from '../records/commands.ts'
import { KEYS_VERSION } from '../records/keys.ts'
import { RULESET, type RulesetMeta } from '../records/rules.ts'
import { SYSTEM, tenantScope } from '../records/scopes.ts'
import { readWorkspace, WORKSPACE_COPY, workspaceKey } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Effect, type Read, refuse } from './change.ts'

export async function applyWorkspaceCreate(
  command: CommandOf<'workspace.create'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const id = command.workspace
  const known = await readWorkspace(read, id)
  if (known !== null) {
    // Asked for once more, because nobody knew what had become of it.
    const { tokenSecret: _, ...shown } = known
    return { outcome: { ok: true, seq, at: known.createdAt, workspace: shown }, effects: [] }
  }
  const { settings, ...fields } = command.data
  return written({ id, ...fields, settings: withoutNull(settings), createdAt: command.at }, null, command, seq, read)
}

export async function applyWorkspaceUpdate(
  command: CommandOf<'workspace.update'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const before = await readWorkspace(read, command.workspace)
  if (before === null) return refuse(seq, 'not_found')
  const { settings, ...fields } = command.data
  return written(
    { ...before, ...fields, settings: withoutNull({ ...before.settings, ...settings }) },
    before,
    command,
    seq,
    read,
  )
}

export async function applyWorkspaceToken(
  command: CommandOf<'workspace.token'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const before = await readWorkspace(read, command.workspace)
  if (before === null) return refuse(seq, 'not_found')
  const { tokenSecret, isLost } = command.data
  return written(
    { ...before, tokenSecret, ...(isLost ? { tokensLostAt: command.at } : {}) },
    before,
    command,
    seq,
    read,
  )
}

const shownOf = ({ tokenSecret: _, ...shown }: Workspace) => shown

/** Limits that were lifted are none. */
function withoutNull<S extends WorkspaceSettingsChange>({ limits, ...settings }: S) {
  return limits == null ? settings : { ...settings, limits }
}

async function written(
  workspace: Workspace,
  before: Workspace | null,
  { at }: Command,
  seq: number,
  read: Read,
): Promise<Change> {
  const copies: Effect[] = []
  for (const env of ENVS) {
    const scope = tenantScope(workspace.id, env)
    const [meta] = await read.get<RulesetMeta>(scope, [RULESET])
    const ruleset: RulesetMeta = { ...(meta?.value ?? { rules: 0, active: 0, bytes: 0 }), revision: seq }
    copies.push({
      scope,
      put: [
        { key: RULESET, value: ruleset },
        { key: WORKSPACE_COPY, value: workspace },
      ],
    })
  }
  const shown = shownOf(workspace)
  return {
    outcome: { ok: true, seq, at, workspace: shown, revision: seq },
    effects: [
      ...copies,
      {
        scope: SYSTEM,
        put: [
          { key: workspaceKey(workspace.id), value: workspace },
          { key: KEYS_VERSION, value: { seq } },
        ],
      },
    ],
    keysChanged: true,
    audit: {
      resource: 'workspace',
      id: workspace.id,
      action: before === null ? 'create' : 'update',
      before: before === null ? null : shownOf(before),
      after: shown,
    },
    auditEnvs: ENVS,
    rulesets: ENVS.map((env) => ({ workspace: workspace.id, env })),
  }
}
