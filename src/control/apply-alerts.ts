// Commands about alerts.

import type { Alert } from '../domain/alert.ts'
import { must } from '../lib/must.ts'
import { ALERT, alertKey, firedKey, type StoredAlert } from '../records/alerts.ts'
import { tenantScope } from '../records/scopes.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'

type AlertCommand = CommandOf<'alert.create' | 'alert.update' | 'alert.delete'>

const scopeOf = (command: AlertCommand) => tenantScope(command.workspace, must(command.env, 'an environment'))

async function readStored(command: AlertCommand, read: Read): Promise<StoredAlert | null> {
  const [entry] = await read.get<StoredAlert>(scopeOf(command), [alertKey(command.data.id)])
  return entry?.value ?? null
}

export async function applyAlertCreate(command: CommandOf<'alert.create'>, seq: number, read: Read): Promise<Change> {
  const { alertsMax, ...fields } = command.data
  if ((await readWorkspace(read, command.workspace)) === null) return refuse(seq, 'not_found')
  const known = await readStored(command, read)
  // Ids are drawn for each request: this one was repeated because nobody knew what had become of it.
  if (known !== null) return { outcome: { ok: true, seq, at: command.at, alert: known }, effects: [] }
  const all = await read.scan(scopeOf(command), ALERT, { limit: Math.max(1, alertsMax) })
  if (all.length >= alertsMax) {
    return refuse(seq, 'resource_limit_reached', `An environment may have at most ${alertsMax} alerts.`)
  }
  return written(command, seq, null, { ...fields, createdAt: command.at, updatedAt: command.at })
}

export async function applyAlertUpdate(command: CommandOf<'alert.update'>, seq: number, read: Read): Promise<Change> {
  const old = await readStored(command, read)
  if (old === null) return refuse(seq, 'not_found')
  return written(command, seq, old, { ...old, ...command.data.changes, updatedAt: Math.max(old.updatedAt, command.at) })
}

export async function applyAlertDelete(command: CommandOf<'alert.delete'>, seq: number, read: Read): Promise<Change> {
  const old = await readStored(command, read)
  if (old === null) return refuse(seq, 'not_found')
  return {
    outcome: { ok: true, seq, at: command.at },
    effects: [{ scope: scopeOf(command), drop: [alertKey(old.id), firedKey(old.id)] }],
    audit: { resource: 'alert', id: old.id, action: 'delete', before: old, after: null },
  }
}

function written(command: AlertCommand, seq: number, old: StoredAlert | null, alert: Alert): Change {
  const stored: StoredAlert = { ...alert, version: seq }
  return {
    outcome: { ok: true, seq, at: command.at, alert: stored },
    effects: [{ scope: scopeOf(command), put: [{ key: alertKey(alert.id), value: stored }] }],
    audit: { resource: 'alert', id: alert.id, action: old === null ? 'create' : 'update', before: old, after: stored },
  }
}
