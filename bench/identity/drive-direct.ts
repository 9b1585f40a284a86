// Visits decided by the engine's pure part in this process, with all state in memory: the quick way, for development. What
// the ingress does before (token, partition) is done the same way.

import type { Explanation } from '../../src/domain/event.ts'
import type { TokenClaims } from '../../src/domain/identify.ts'
import { hash32, homePartition } from '../../src/domain/ids.ts'
import { MERGED_RECORDS } from '../../src/engine/merged-records.ts'
import { createPartition, type Partition } from '../../src/engine/partition.ts'
import type { LoadedEntry, WantedEntry } from '../../src/engine/state.ts'
import { decodeEventsRecord, rowAt } from '../../src/events/record.ts'
import { fromRow } from '../../src/events/row.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { hardwareKey } from '../../src/identity/routing.ts'
import { verifyToken } from '../../src/identity/token.ts'
import { must } from '../../src/lib/must.ts'
import type { DecidedEffect, HealingEffect } from '../../src/records/effects.ts'
import { encodeAliasing } from '../../src/records/identification.ts'
import { absent, answered } from '../../test/helpers/asking.ts'
import { rng } from '../../test/helpers/rng.ts'
import { type Answer, createStorages } from './answer.ts'
import type { Visit } from './population.ts'
import { ENV, evidenceOf, openBareRuleset, recordOf, WORKSPACE } from './record.ts'
import { createSearches } from './search.ts'

/** Takes visits in order and tells the answers in the same order. */
export type Drive = (visits: Iterable<Visit>, told: (visit: Visit, answer: Answer) => void) => Promise<void>

const PARTITIONS = 4
const CHECKPOINT_AFTER = 50_000

/** Beyond what any population has: what is measured is who is healed, not when there are too many at once. */
const HEALS_PER_SECOND_MAX = 1_000

interface Decision {
  readonly visitorId: string
  readonly confidence: number
  readonly storageToken: string
  readonly explanation?: Explanation
}
interface Decided {
  readonly decision: Decision
  readonly effects: readonly DecidedEffect[]
}

/** What is stored of a visit that nobody was weighed for. */
const NOBODY: Explanation = { candidates: [], comparison: null, evidence: [], presentedGeneration: null }

/** What one record becomes, when nothing but what is in memory exists. */
export function decideOne(
  partition: Partition,
  record: Uint8Array,
  seq: number,
  explained = false,
  load: (wanted: readonly WantedEntry[]) => readonly LoadedEntry[] = absent,
): Decided {
  // Whatever was written is still in memory, so whatever is asked for does not exist.
  const { replies, dead, records, effects: all } = answered(partition.decide([{ seq, bytes: record }], new Set()), load)
  if (dead.length > 0) throw new Error(`a visit was not decided: ${dead[0]?.reason}`)
  const decision = JSON.parse(must(replies[0], 'a reply').body) as Decision
  const effects = all.flatMap((some) => some.flatMap((one) => one.effects))
  if (!explained) return { decision, effects }
  const { identity } = fromRow(rowAt(decodeEventsRecord(must(records[0], 'a record')), 0))
  return { decision: { ...decision, explanation: identity.explanation ?? NOBODY }, effects }
}

/** `explained`: answers carry what each visit without a token was told by. */
export function createDirectDrive(seed: number, explained = false): Drive {
  const r = rng(seed)
  const parsers = openParsers()
  const ruleset = openBareRuleset()
  const storages = createStorages()
  let atMs = 0
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) =>
    createPartition({
      partition,
      partitions: PARTITIONS,
      random: r.bytes,
      monotonic: () => atMs,
      healsPerSecondMax: HEALS_PER_SECOND_MAX,
      ruleset: () => ruleset,
      visitorsMax: Number.POSITIVE_INFINITY,
    }),
  )
  const searches = explained ? createSearches(partitions, parsers) : null
  let seq = 0

  /** Of each survivor, all that are one with it. */
  const groups = new Map<string, readonly string[]>()
  const load = (wanted: readonly WantedEntry[]): LoadedEntry[] =>
    absent(wanted).map((entry) => {
      if (entry.kind !== MERGED_RECORDS) return entry
      const survivor = entry.id.slice(entry.id.lastIndexOf('/') + 1)
      return { ...entry, value: { ids: groups.get(survivor) ?? [survivor], elsewhere: [] } }
    })

  const rootOf = (id: string): string => [...groups].find(([, ids]) => ids.includes(id))?.[0] ?? id

  /** What the owner of `changes` orders when a visit has shown two visitors to be one device. */
  function heal({ visitorId, survivor, confidence }: HealingEffect): void {
    const root = rootOf(survivor)
    groups.set(root, [...(groups.get(root) ?? [root]), visitorId])
    for (const id of [visitorId, root]) {
      const healedBy = { requestId: '', confidence }
      const bytes = encodeAliasing({
        workspace: WORKSPACE.id,
        env: ENV,
        visitorId: id,
        survivor: root,
        at: atMs,
        healedBy,
      })
      const partition = must(partitions[homePartition(id, PARTITIONS)], 'a partition')
      answered(partition.decide([{ seq: seq++, bytes }], new Set()), absent)
    }
  }

  function homeOf(visit: Visit, token: TokenClaims | null): number {
    if (token !== null) return homePartition(token.visitorId, PARTITIONS)
    const headers = evidenceOf(visit)
    const key = hardwareKey(visit.body, headers, headers['user-agent'] ?? '', parsers)
    return hash32(`${WORKSPACE.id}/${ENV}/${key}`) % PARTITIONS
  }

  function decide(visit: Visit): Answer {
    const storageToken = storages.read(visit)
    const token = storageToken === null ? null : verifyToken(WORKSPACE.tokenSecret, WORKSPACE.id, ENV, storageToken)
    const home = homeOf(visit, token)
    const partition = must(partitions[home], 'a partition')
    const record = recordOf(visit, storageToken, token, r.bytes)
    atMs = visit.atMs
    const search = token === null ? searches?.begin(home, record) : undefined
    const { decision, effects } = decideOne(partition, record, seq++, explained && token === null, load)
    for (const effect of effects) if (effect.type === 'heal') heal(effect)
    // Keeps the list of what changed short; nothing is forgotten.
    if (partition.dirtyCount() > CHECKPOINT_AFTER) partition.checkpoint()
    storages.write(visit, decision.storageToken)
    const { visitorId: id, confidence, explanation } = decision
    return { id, confidence, ...(explanation === undefined ? {} : { explanation }), ...(search ? { search } : {}) }
  }

  return async (visits, told) => {
    for (const visit of visits) told(visit, decide(visit))
  }
}
