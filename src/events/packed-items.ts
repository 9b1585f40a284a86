// A decided event as it is packed in a record of the `events` topic: a list of values by position, to which values are only ever added.

import { Packr } from 'msgpackr'
import type { Env } from '../domain/event.ts'
import type { KeyKind } from '../domain/workspace.ts'
import { packNumber, packText, putArray, putBytes, putNull, putNumbers, putRaw, putTexts } from '../lib/packing.ts'
import type { DecidedEffect, LogLine } from '../records/effects.ts'

const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: true })

/** What applying one decision to state needs. Rows are found by `rowBytes`, in order. */
export interface DecidedItem {
  /** Seq of the identification in `identifications/p`. */
  readonly seq: number
  readonly requestId: string
  readonly workspace: string
  readonly env: Env
  readonly visitorId: string
  /** The visitor's whole packed state after this event. */
  readonly state: Uint8Array
  /** Match-index keys under which the visitor is to be found from now on. */
  readonly indexed: readonly string[]
  /** [ruleId, 1 when live, 0 when monitored] of every rule that matched. */
  readonly matches: readonly (readonly [string, number])[]
  /** 53-bit hash of (workspace, env, nonce), 0 without a nonce; 48-bit hash of the body. */
  readonly nonceHash: number
  readonly bodyHash: number
  readonly acceptedAt: number
  readonly keyKind: KeyKind
  readonly replyTo: string
  readonly rowBytes: number
  /** Side effects of the deciding rule. Webhook and slack are notifications for whoever delivers them. */
  readonly effects?: readonly DecidedEffect[]
  /** What the visit taught about its system and browser, whose id among what is learned comes first. */
  readonly lesson?: readonly [family: string, lesson: readonly number[]]
  /** What the event adds to counters of its address and account, as numbers; absent when it could not be decided. */
  readonly counted?: readonly (number | null)[]
  /** Lines that rules asked for: whoever adopts the event writes them again. */
  readonly logs?: readonly LogLine[]
  /** Match-index keys under which the visitor is not to be found any more. */
  readonly left?: readonly string[]
  /** Of the caller's trace, for what is told of the event. */
  readonly trace?: string
}

/** How many values an item is packed as: what many items have not is at the end. */
function countParts(i: DecidedItem, hasEffects: boolean): number {
  if (i.trace) return 20
  if (i.left !== undefined) return 19
  if (i.logs !== undefined) return 18
  if (i.counted !== undefined) return 17
  if (i.lesson !== undefined) return 16
  return hasEffects ? 15 : 14
}

export function putItem(i: DecidedItem): void {
  const hasEffects = i.effects !== undefined && i.effects.length > 0
  const parts = countParts(i, hasEffects)
  putArray(parts)
  packNumber(i.seq)
  packText(i.requestId)
  packText(i.workspace)
  packText(i.env)
  packText(i.visitorId)
  putBytes(i.state)
  putTexts(i.indexed)
  putArray(i.matches.length)
  for (const [ruleId, live] of i.matches) {
    putArray(2)
    packText(ruleId)
    packNumber(live)
  }
  packNumber(i.nonceHash)
  packNumber(i.bodyHash)
  packNumber(i.acceptedAt)
  packText(i.keyKind)
  packText(i.replyTo)
  packNumber(i.rowBytes)
  if (parts > 14) putAny(hasEffects ? i.effects : undefined)
  if (parts > 15) putLesson(i.lesson)
  if (parts > 16) {
    if (i.counted === undefined) putNull()
    else putNumbers(i.counted)
  }
  if (parts > 17) putAny(i.logs)
  if (parts > 18) {
    if (i.left === undefined) putNull()
    else putTexts(i.left)
  }
  if (parts > 19) packText(i.trace ?? '')
}

function putLesson(lesson: DecidedItem['lesson']): void {
  if (lesson === undefined) {
    putNull()
    return
  }
  const [family, numbers] = lesson
  putArray(2)
  packText(family)
  putNumbers(numbers)
}

/** What is rare, or has a form of its own. */
function putAny(value: unknown): void {
  if (value === undefined) putNull()
  else putRaw(packr.pack(value))
}

export type PackedItem = [
  number,
  string,
  string,
  Env,
  string,
  Uint8Array,
  string[],
  [string, number][],
  number,
  number,
  number,
  KeyKind,
  string,
  number,
  (readonly DecidedEffect[] | null)?,
  (readonly [string, readonly number[]] | null)?,
  (readonly (number | null)[] | null)?,
  (readonly LogLine[] | null)?,
  (readonly string[] | null)?,
  (string | null)?,
]

type Draft = { -readonly [Field in keyof DecidedItem]: DecidedItem[Field] }

export function itemOf(i: PackedItem): DecidedItem {
  // One object of one shape, filled in two steps: copying members costs more than all else here.
  const item: Draft = {
    seq: i[0],
    requestId: i[1],
    workspace: i[2],
    env: i[3],
    visitorId: i[4],
    state: i[5],
    indexed: i[6],
    matches: i[7],
    nonceHash: i[8],
    bodyHash: i[9],
    acceptedAt: i[10],
    keyKind: i[11],
    replyTo: i[12],
    rowBytes: i[13],
  }
  if (i[14] != null) item.effects = i[14]
  if (i[15] != null) item.lesson = i[15]
  if (i[16] != null) item.counted = i[16]
  if (i[17] != null) item.logs = i[17]
  if (i[18] != null) item.left = i[18]
  if (i[19] != null) item.trace = i[19]
  return item
}
