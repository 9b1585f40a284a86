// Visits decided by the engine's pure part in this process, with all state in memory: the quick way, for development. What
// the ingress does before (token, partition) is done the same way.

import { EVIDENCE_HEADERS, type IdentifyMeta, type TokenClaims } from '../../src/domain/identify.ts'
import { hash32, homePartition, makeRequestId } from '../../src/domain/ids.ts'
import { createPartition, type Partition } from '../../src/engine/partition.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { hardwareKey } from '../../src/identity/routing.ts'
import { verifyToken } from '../../src/identity/token.ts'
import { must } from '../../src/lib/must.ts'
import { encodeIdentification } from '../../src/records/identification.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { rng } from '../../test/helpers/rng.ts'
import { type Answer, createStorages } from './answer.ts'
import type { Visit } from './population.ts'

/** Takes visits in order and tells the answers in the same order. */
export type Drive = (visits: Iterable<Visit>, told: (visit: Visit, answer: Answer) => void) => Promise<void>

const WORKSPACE = {
  id: 'ws_bench',
  plan: 'enterprise',
  settings: { clientResult: 'id' },
  tokenSecret: 'a secret that only this benchmark uses',
  apiVersion: '2026-11-01',
} as const
const ENV = 'test'
const PARTITIONS = 4
const CHECKPOINT_AFTER = 50_000

interface Decision {
  readonly visitorId: string
  readonly confidence: number
  readonly storageToken: string
}

function decideOne(partition: Partition, record: Uint8Array, seq: number): Decision {
  let wanted = partition.begin([{ seq, bytes: record }])
  // Whatever was written is still in memory, so whatever is asked for does not exist.
  while (wanted.length > 0) {
    wanted = partition.provide(
      wanted.flatMap(({ kind, id }) => (kind === 'ruleset' ? [] : [{ kind, id, value: null }])),
    )
  }
  const { replies, dead } = partition.decide(new Set())
  if (dead.length > 0) throw new Error(`a visit was not decided: ${dead[0]?.reason}`)
  return JSON.parse(must(replies[0], 'a reply').body) as Decision
}

export function createDirectDrive(seed: number): Drive {
  const r = rng(seed)
  const parsers = openParsers()
  const snapshot = encodeSnapshot({ workspace: WORKSPACE, env: ENV, revision: 1, rules: [] })
  const ruleset = openSnapshot(snapshot)
  const storages = createStorages()
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) =>
    createPartition({
      partition,
      partitions: PARTITIONS,
      random: r.bytes,
      monotonic: () => 0,
      ruleset: () => ruleset,
      visitorsMax: Number.POSITIVE_INFINITY,
    }),
  )
  let seq = 0

  function metaOf(visit: Visit, token: TokenClaims | null): IdentifyMeta {
    const headers: Record<string, string> = {}
    for (const name of EVIDENCE_HEADERS) {
      const value = visit.headers[name]
      if (value !== undefined) headers[name] = value
    }
    return {
      requestId: makeRequestId(visit.atMs, r.bytes),
      acceptedAt: visit.atMs,
      workspace: WORKSPACE.id,
      env: ENV,
      keyKind: 'public',
      ip: visit.ip,
      headers,
      token,
      tokenForged: false,
      replyTo: 'bench',
    }
  }

  function homeOf(visit: Visit, meta: IdentifyMeta): number {
    if (meta.token !== null) return homePartition(meta.token.visitorId, PARTITIONS)
    const key = hardwareKey(visit.body, meta.headers, meta.headers['user-agent'] ?? '', visit.ip, parsers)
    return hash32(`${WORKSPACE.id}/${ENV}/${key}`) % PARTITIONS
  }

  function decide(visit: Visit): Answer {
    const storageToken = storages.read(visit)
    const token = storageToken === null ? null : verifyToken(WORKSPACE.tokenSecret, WORKSPACE.id, ENV, storageToken)
    const meta = metaOf(visit, token)
    const bytes = new TextEncoder().encode(JSON.stringify({ ...visit.body, storageToken }))
    const partition = must(partitions[homeOf(visit, meta)], 'a partition')
    const decision = decideOne(partition, encodeIdentification(meta, bytes), seq++)
    // Keeps the list of what changed short; nothing is forgotten.
    if (partition.dirtyCount() > CHECKPOINT_AFTER) partition.checkpoint()
    storages.write(visit, decision.storageToken)
    return { id: decision.visitorId, confidence: decision.confidence }
  }

  return async (visits, told) => {
    for (const visit of visits) told(visit, decide(visit))
  }
}
