// What customers say of an event afterwards: the command in `identifications`, and the list of those that ClickHouse has still to
// take in, which reads of the event apply meanwhile.

import type { Env, StoredEvent } from '../domain/event.ts'
import type { Kv, KvKey, Put } from '../kv/kv.ts'
import { partitionScope } from './partitions.ts'
import { scanAll, seqId, under } from './scopes.ts'

/** Only what is named changes; a tag is replaced whole. */
export interface AnnotatedChanges {
  readonly linkedId?: StoredEvent['linkedId']
  readonly tag?: StoredEvent['tag']
  readonly label?: StoredEvent['label']
}

/** The accounts of a visitor after the correction of one of its events. */
export interface Recount {
  /** Whose record has the event's visit. */
  readonly visitorId: string
  readonly add: string | null
  /** No other event of the record has it. */
  readonly drop: string | null
  /** The latest visit of which that is known, milliseconds: after another one nothing is dropped. */
  readonly lastSeenAt: number
}

/** What is asked of the owner of the partition that decided the event. */
export interface Annotation {
  readonly annotationId: string
  readonly workspace: string
  readonly env: Env
  readonly requestId: string
  readonly changes: AnnotatedChanges
  readonly recount?: Recount
}

/** With its place in `identifications`, in whose order annotations of one event are applied. */
export interface DecidedAnnotation extends Annotation {
  readonly seq: number
  /** The visitor's whole packed record once its accounts are counted anew. */
  readonly state?: Uint8Array
}

/** Collection in a partition's scope: annotations answered, or about to be, that ClickHouse has not taken in yet. */
const ANNOTATING = 'annotating'
/** Collection in a partition's scope: that an annotation was decided, for whoever asked for it. */
const ANNOTATED = 'annotated'
const ANNOTATED_TTL_MS = 600_000

const annotatingKey = ({ workspace, env, requestId, seq }: DecidedAnnotation): KvKey => [
  ANNOTATING,
  `${workspace}/${env}/${requestId}/${seqId(seq)}`,
]

/** From then on reads of the event show it. Stored before the decision is appended, under the position of the sink. */
export const annotatingPuts = (annotations: readonly DecidedAnnotation[]): Put[] =>
  annotations.flatMap((annotation) => [
    { key: annotatingKey(annotation), value: annotation.changes },
    { key: [ANNOTATED, annotation.annotationId], value: true, ttlMs: ANNOTATED_TTL_MS },
  ])

/** What the sink drops, with its own step forward, when ClickHouse has them. */
export const annotatedKeys = (annotations: readonly DecidedAnnotation[]): KvKey[] => annotations.map(annotatingKey)

/** Whether the owner of the partition has decided it. */
export async function isAnnotated(kv: Pick<Kv, 'get'>, partition: number, annotationId: string): Promise<boolean> {
  const [entry] = await kv.get(partitionScope(partition), [[ANNOTATED, annotationId]])
  return entry !== null && entry !== undefined
}

/**
 * All that ClickHouse may lack about an event, in order, of the partitions that may have decided it. To be asked for before the event is read: what is missing here then is
 * in the row already, or was not answered yet.
 */
export async function listAnnotating(
  kv: Pick<Kv, 'scan'>,
  partitions: readonly number[],
  workspace: string,
  env: Env,
  requestId: string,
): Promise<AnnotatedChanges[]> {
  const bounds = under(`${workspace}/${env}/${requestId}`)
  async function ofPartition(partition: number): Promise<AnnotatedChanges[]> {
    const found: AnnotatedChanges[] = []
    for await (const { value } of scanAll<AnnotatedChanges>(kv, partitionScope(partition), ANNOTATING, bounds)) {
      found.push(value)
    }
    return found
  }
  return (await Promise.all(partitions.map(ofPartition))).flat()
}

/** Events whose account was corrected and may be another in ClickHouse, with the account. To be asked for as above. */
export async function listRelinking(
  kv: Pick<Kv, 'scan'>,
  partitions: number,
  workspace: string,
  env: Env,
): Promise<Map<string, string | null>> {
  const prefix = `${workspace}/${env}`
  const found = new Map<string, string | null>()
  for (let partition = 0; partition < partitions; partition++) {
    const all = scanAll<AnnotatedChanges>(kv, partitionScope(partition), ANNOTATING, under(prefix))
    for await (const { key, value } of all) {
      if (value.linkedId !== undefined) found.set(key[1].slice(prefix.length + 1).split('/')[0] ?? '', value.linkedId)
    }
  }
  return found
}

/** Events that were labelled and whose label ClickHouse may lack. To be asked for before their rows are read, as above. */
export async function listLabelling(
  kv: Pick<Kv, 'scan'>,
  partitions: number,
  workspace: string,
  env: Env,
): Promise<string[]> {
  const prefix = `${workspace}/${env}`
  const found = new Set<string>()
  for (let partition = 0; partition < partitions; partition++) {
    const all = scanAll<AnnotatedChanges>(kv, partitionScope(partition), ANNOTATING, under(prefix))
    for await (const { key, value } of all) {
      if (value.label !== undefined) found.add(key[1].slice(prefix.length + 1).split('/')[0] ?? '')
    }
  }
  return [...found]
}

/** The event with what was said of it. Twice equals once. */
export const annotated = (event: StoredEvent, all: readonly AnnotatedChanges[]): StoredEvent =>
  all.length === 0 ? event : Object.assign({}, event, ...all)
