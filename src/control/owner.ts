// The owner of `changes`: applies commands in order and is the only writer of configuration. Two owners at once, or one
// that dies anywhere, leave the same records, because every scope carries the position of the last command applied in it.

import type { Bus } from '../bus/bus.ts'
import type { Kv, Scope } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { pack } from '../lib/codec.ts'
import { Conflict, Told, Unavailable, Unreadable } from '../lib/failures.ts'
import type { Log, LogRecord } from '../log/log.ts'
import { type Command, decodeCommand, homeScope } from '../records/commands.ts'
import { publishHint } from '../records/hints.ts'
import { CHANGES_READER, CHANGES_SOURCE, SYSTEM } from '../records/scopes.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Applied, apply } from './apply.ts'

// Small, because pollers see the reader's position move once per batch.
const BATCH = { recordsMax: 32, bytesMax: 4_000_000, waitMsMax: 5_000 } as const
const RETRY_MS = 200
const COMMIT_ATTEMPTS_MAX = 50
/** Dropped by one commit before what a command changes: others wait for the store meanwhile. */
const EARLY_KEYS = 4_000

/** A position is gone that must exist: the records are not what the log says. Only a rebuild can tell. */
export class NeedsRebuild extends Told {
  override readonly name = 'NeedsRebuild'
}

export type ControlReport =
  | {
      readonly kind: 'applied'
      readonly seq: number
      readonly type: string
      readonly ok: boolean
      readonly skipped: number
    }
  /** The command could not be read or applied; it was moved to the topic `dead`. */
  | { readonly kind: 'dead'; readonly seq: number; readonly reason: string }
  /** A port does not serve; the same command is tried again. */
  | { readonly kind: 'stalled'; readonly error: unknown }

export interface ControlNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly report: (fact: ControlReport) => void
}

interface Owner extends ControlNeeds {
  /** By scope the last command that it has applied there. A scope that is behind has lost what was applied since. */
  readonly left: Map<Scope, number>
}

/** Resolves when `signal` aborts. Fails with NeedsRebuild, or with what the ports raise besides Unavailable. */
export async function runControl(needs: ControlNeeds): Promise<void> {
  const { log, clock, signal, report } = needs
  while (!signal.aborted) {
    try {
      let position = await readerPosition(needs.kv)
      const owner: Owner = { ...needs, left: new Map() }
      while (!signal.aborted) {
        const records = await log.read('changes', 0, position, BATCH, signal)
        // Behind a failover the kv may be as it was some commands ago. Were a later one applied first, those would count as applied.
        const stored = await readerPosition(needs.kv)
        position = stored === position ? await applyBatch(owner, records, position) : stored
      }
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      report({ kind: 'stalled', error })
      await clock.sleep(RETRY_MS, signal)
    }
  }
}

async function readerPosition(kv: Kv): Promise<number> {
  const position = await kv.position(SYSTEM, CHANGES_READER)
  if (position === null) throw new NeedsRebuild('the position of the reader of `changes` is missing: run rebuild')
  return position
}

/** The position to read on from. The reader's own position may lag behind the scopes': what is applied is skipped. */
async function applyBatch(needs: Owner, records: readonly LogRecord[], position: number): Promise<number> {
  for (const record of records) {
    if (needs.signal.aborted) return position
    await applyRecord(needs, record)
  }
  const next = records.at(-1)?.seq
  if (next === undefined) return position
  const guard = { source: CHANGES_READER, expect: position, next }
  const [advanced] = await needs.kv.commit([{ scope: SYSTEM, guard }])
  // Another owner is at work as well: go on from where it has come to.
  return advanced ? next : readerPosition(needs.kv)
}

async function applyRecord(needs: Owner, { seq, bytes }: LogRecord): Promise<void> {
  const command = decodeCommand(bytes)
  if (typeof command === 'string') return bury(needs, seq, bytes, command)
  try {
    await applyCommand(needs, command, seq)
  } catch (error) {
    const ofPort = error instanceof Unavailable || error instanceof Conflict || error instanceof Unreadable
    if (ofPort || error instanceof NeedsRebuild) throw error
    await bury(needs, seq, bytes, `failed: ${error instanceof Error ? error.message : 'not an error'}`)
  }
}

async function bury({ log, report }: ControlNeeds, seq: number, bytes: Uint8Array, reason: string): Promise<void> {
  await log.append('dead', 0, [pack({ topic: 'changes', partition: 0, seq, reason: reason.slice(0, 1_000), bytes })])
  report({ kind: 'dead', seq, reason })
}

async function applyCommand(needs: Owner, command: Command, seq: number): Promise<void> {
  const { kv, report } = needs
  const home = homeScope(command)
  for (let attempt = 0; attempt < COMMIT_ATTEMPTS_MAX; attempt++) {
    const homePosition = await positionOf(needs, home, command)
    if (homePosition !== null && homePosition >= seq) return
    const applied = await apply(command, seq, kv)
    // What was read while another owner wrote may never have stood there together, and an order cannot be taken back.
    if (applied.orders.length > 0 && (await positionOf(needs, home, command)) !== homePosition) continue
    for (const { partition, bytes } of applied.orders) await needs.log.append('identifications', partition, [bytes])
    await dropEarly(kv, applied)
    if (!(await commitAll(needs, applied, command, seq, homePosition))) continue
    publish(needs, command, applied)
    report({ kind: 'applied', seq, type: command.type, ok: applied.outcome.ok, skipped: skippedOf(applied) })
    return
  }
  throw new Unavailable(`the records of command ${seq} keep changing under its owner`)
}

/** As `EntriesOutcome` has it. */
const skippedOf = ({ outcome }: Applied): number => (outcome.ok ? (outcome.entries?.skipped ?? 0) : 0)

async function dropEarly(kv: Kv, { early }: Applied): Promise<void> {
  if (early === null) return
  const { scope, drop } = early
  for (let from = 0; from < drop.length; from += EARLY_KEYS) {
    await kv.commit([{ scope, drop: drop.slice(from, from + EARLY_KEYS) }])
  }
}

/** False when another owner moved a scope meanwhile: the command must be computed again from what is there now. */
async function commitAll(
  owner: Owner,
  { effects }: Applied,
  command: Command,
  seq: number,
  homePosition: number | null,
): Promise<boolean> {
  for (const { scope, put, drop, home } of effects) {
    const expect = home ? homePosition : await positionOf(owner, scope, command)
    if (!home && expect !== null && expect >= seq) continue
    const guard = { source: CHANGES_SOURCE, expect, next: seq }
    const [done] = await owner.kv.commit([{ scope, guard, put, drop }])
    if (!done) return false
    owner.left.set(scope, seq)
  }
  return true
}

/** null is right only where nothing can have been applied yet: in the scopes of a workspace that does not exist. */
async function positionOf({ kv, left }: Owner, scope: Scope, command: Command): Promise<number | null> {
  const position = await kv.position(scope, CHANGES_SOURCE)
  if (position !== null && position < (left.get(scope) ?? 0)) {
    throw new Unavailable(`the kv has lost what was applied in ${scope}: it is applied again`)
  }
  if (position !== null) return position
  if (scope === SYSTEM || (await readWorkspace(kv, command.workspace)) !== null) {
    throw new NeedsRebuild(`the position of \`changes\` in ${scope} is missing: run rebuild`)
  }
  return null
}

function publish({ bus }: ControlNeeds, command: Command, applied: Applied): void {
  const revision = applied.outcome.seq
  if (applied.keysChanged) publishHint(bus, 'keys.changed', {})
  for (const { workspace, env } of applied.rulesets) {
    publishHint(bus, 'ruleset.revision', { workspace, env, revision })
  }
  for (const change of applied.webhooks) publishHint(bus, 'webhooks.changed', change)
  for (const place of applied.lists) publishHint(bus, 'lists.changed', { ...place, seq: revision })
  publishHint(bus, 'control.applied', { commandId: command.id, outcome: applied.outcome })
}
