// What becomes of secrets at a start: those that older builds left in clear are sealed, in `changes` as well, and those that were
// given up as lost are replaced, or what needs them is switched off. Twice equals once.

import type { RandomBytes } from '../domain/ids.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Sealer } from '../lib/sealed.ts'
import { sealedBy } from '../lib/sealed.ts'
import type { Log } from '../log/log.ts'
import { decodeCommand, encodeCommand } from '../records/commands.ts'
import { CHANGES_READER, SYSTEM } from '../records/scopes.ts'
import { type Secrets, sealToken } from '../records/secrets.ts'
import { makeTokenSecret } from './bootstrap.ts'
import { accepted, type Submitter } from './submit.ts'

export interface MendSecretsNeeds {
  readonly kv: Pick<Kv, 'position'>
  readonly log: Pick<Log, 'read' | 'replace'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
  readonly submit: Submitter['submit']
  /** Processes of an older build beside this one take a sealed secret for the secret itself: then the old ones stay. */
  readonly sealsOld: boolean
}

const ACTOR = 'secrets'
const BATCH = { recordsMax: 200, bytesMax: 2_000_000, waitMsMax: 0 }

export async function mendSecrets(needs: MendSecretsNeeds, { sealer, unreadable }: Secrets): Promise<void> {
  const { submit, random, clock } = needs
  const setToken = async ({ id }: Workspace, tokenSecret: string, isLost: boolean) =>
    accepted(
      await submit({
        ...{ type: 'workspace.token', workspace: id, env: null, actor: ACTOR },
        data: { tokenSecret: sealToken(sealer, id, tokenSecret), isLost },
      }),
    )
  for (const workspace of unreadable.tokens) await setToken(workspace, makeTokenSecret(random), true)
  for (const { id, workspace, env } of unreadable.webhooks) {
    // Refused where it is disabled already.
    const data = { id, failingSince: clock.now(), reason: 'secret_lost' } as const
    await submit({ type: 'webhook.disable', workspace, env, actor: ACTOR, data })
  }
  if (!needs.sealsOld || unreadable.unsealed.length === 0) return
  for (const workspace of unreadable.unsealed) await setToken(workspace, workspace.tokenSecret, false)
  await sealInChanges(needs, sealer)
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
      if (typeof command === 'string' || command.type !== 'workspace.create') continue
      const { tokenSecret } = command.data
      if (sealedBy(tokenSecret) !== null) continue
      const data = { ...command.data, tokenSecret: sealToken(sealer, command.workspace, tokenSecret) }
      await log.replace('changes', 0, seq, encodeCommand({ ...command, data }))
    }
    if (records.length === 0) return
  }
}
