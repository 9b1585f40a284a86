// Workspaces in the kv: the record itself in `system`, and a copy in each environment's scope beside its rules.

import type { Workspace } from '../domain/workspace.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { SYSTEM, scanAll } from './scopes.ts'

export const WORKSPACE = 'workspace'
export const workspaceKey = (id: string): KvKey => [WORKSPACE, id]
/**
 * In an environment's scope. Evaluators read it together with the rules, so that settings and rules of one revision
 * are never mixed with those of another.
 */
export const WORKSPACE_COPY: KvKey = ['meta', 'workspace']

export async function readWorkspace(kv: Pick<Kv, 'get'>, id: string): Promise<Workspace | null> {
  const [entry] = await kv.get<Workspace>(SYSTEM, [workspaceKey(id)])
  return entry?.value ?? null
}

/** All workspaces in id order. */
export async function listWorkspaces(kv: Pick<Kv, 'scan'>): Promise<Workspace[]> {
  const found: Workspace[] = []
  for await (const entry of scanAll<Workspace>(kv, SYSTEM, WORKSPACE)) found.push(entry.value)
  return found
}
