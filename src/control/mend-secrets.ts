// What becomes of secrets at a start: those that older builds left in clear are sealed, in `changes` as well, and those that were
// given up as lost are replaced, or what needs them is switched off. Twice equals once.

import { ENVS } from '../domain/event.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Sealer } from '../lib/sealed.ts'
import { sealedBy } from '../lib/sealed.ts'
import type { Log } from '../log/log.ts'
import { type Command, decodeCommand, encodeCommand } from '../records/commands.ts'
import { readRuleset } from '../records/rules.ts'
import { CHANGES_READER, SYSTEM } from '../records/scopes.ts'
import { type Secrets, sealToken } from '../records/secrets.ts'
import { hasOpenAddress, sealAction, sealAddresses } from '../records/slack-addresses.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import { makeTokenSecret } from './bootstrap.ts'
import { accepted, type Submitter } from './submit.ts'

export interface MendSecretsNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position'>
  readonly log: Pick<Log, 'read' | 'replace'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
  readonly submit: Submitter['submit']
  /** Processes of an older build beside this one take a sealed secret for the secret itself: then the old ones stay. */
  readonly sealsOld: boolean
}

const ACTOR = 'secrets'
/** No rule is added. */
const ANY_NUMBER = { rulesMax: Number.MAX_SAFE_INTEGER, activeMax: Number.MAX_SAFE_INTEGER }
const BATCH = { recordsMax: 200, bytesMax: 2_000_000, waitMsMax: 0 }

export async function mendSecrets(needs: MendSecretsNeeds, { sealer, unreadable }: Secrets): Promise<void> {
  const { submit, random, clock } = needs
  const setToken = async ({ id }: Workspace, tokenSecret: string, isLost: boolean) =>
    accepted(
      await submit({
        type: 'workspace.token',
        workspace: id,
        env: null,
        actor: ACTOR,
        data: { tokenSecret: sealToken(sealer, id, tokenSecret), isLost },
      }),
    )
  for (const workspace of unreadable.tokens) await setToken(workspace, makeTokenSecret(random), true)
  for (const { id, workspace, env } of unreadable.webhooks) {
    // Refused where it is disabled already.
    const data = { id, failingSince: clock.now(), reason: 'secret_lost' } as const
    await submit({ type: 'webhook.disable', workspace, env, actor: ACTOR, data })
  }
  if (!needs.sealsOld) return
  for (const workspace of unreadable.unsealed) await setToken(workspace, workspace.tokenSecret, false)
  const rules = await sealInRules(needs, sealer)
  if (unreadable.unsealed.length > 0 || rules > 0) await sealInChanges(needs, sealer)
}

/** Returns how many rules had an address in clear. */
async function sealInRules({ kv, submit }: MendSecretsNeeds, sealer: Sealer): Promise<number> {
  let count = 0
  for (const { id: workspace } of await listWorkspaces(kv)) {
    for (const env of ENVS) {
      const found = await readRuleset(kv, workspace, env)
      for (const { id, action } of found?.rules ?? []) {
        if (!hasOpenAddress(action.sideEffects)) continue
        count++
        const changes = { sideEffects: sealAddresses(sealer, action.sideEffects ?? []) }
        const data = { id, changes, maxima: ANY_NUMBER }
        await submit({ type: 'rule.update', workspace, env, actor: ACTOR, data })
      }
    }
  }
  return count
}

/** The command with what it tells in clear sealed; null where there is nothing of that. */
function sealed(command: Command, sealer: Sealer): Command | null {
  if (command.type === 'workspace.create') {
    const { tokenSecret } = command.data
    if (sealedBy(tokenSecret) !== null) return null
    return { ...command, data: { ...command.data, tokenSecret: sealToken(sealer, command.workspace, tokenSecret) } }
  }
  if (command.type === 'rule.create') {
    const action = sealAction(sealer, command.data.action)
    return action === command.data.action ? null : { ...command, data: { ...command.data, action } }
  }
  if (command.type !== 'rule.update') return null
  const { changes } = command.data
  if (!hasOpenAddress(changes.action?.sideEffects) && !hasOpenAddress(changes.sideEffects)) return null
  const closed = {
    ...changes,
    ...(changes.action === undefined ? {} : { action: sealAction(sealer, changes.action) }),
    ...(changes.sideEffects === undefined ? {} : { sideEffects: sealAddresses(sealer, changes.sideEffects) }),
  }
  return { ...command, data: { ...command.data, changes: closed } }
}

async function sealInChanges({ kv, log }: MendSecretsNeeds, sealer: Sealer): Promise<void> {
  if (log.replace === undefined) return
  const applied = (await kv.position(SYSTEM, CHANGES_READER)) ?? 0
  for (let position = 0; ; ) {
    const records = await log.read('changes', 0, position, BATCH)
    for (const { seq, bytes } of records) {
      if (seq > applied) return
      position = seq
      const command = decodeCommand(bytes)
      const closed = typeof command === 'string' ? null : sealed(command, sealer)
      if (closed !== null) await log.replace('changes', 0, seq, encodeCommand(closed))
    }
    if (records.length === 0) return
  }
}
