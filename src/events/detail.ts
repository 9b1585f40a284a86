// The part of an event that no query filters on, as one JSON text in the row: what equals its usual value is left out,
// because every byte of it is escaped, logged, inserted and compressed.

import {
  type Explanation,
  type Recorded,
  type RuleMatch,
  type ScoreName,
  SIGNAL_NAMES,
  type Signal,
  type SignalName,
  type Signals,
  type StoredEvent,
} from '../domain/event.ts'

type PackedSignal = readonly [
  state: number,
  confidence: number,
  source: string,
  methods?: readonly string[],
  dataAgeSeconds?: number,
]

interface Packed {
  s?: Readonly<Partial<Record<SignalName, PackedSignal>>>
  why?: readonly (readonly [ScoreName, string, number])[]
  hit?: readonly RuleMatch[]
  mon?: readonly RuleMatch[]
  gen?: number
  /** Comparison, and where it is not the usual case of a token: candidates ('' is the event's own visitor) and evidence. */
  x?: readonly [
    comparison: string | null,
    candidates?: readonly (readonly [string, number])[],
    evidence?: readonly string[],
  ]
  /** The visitor the token names, where it is not the event's. */
  own?: string
  /** Visits, first and last time of the record recognised, where the row's are those of several. */
  rec?: readonly [number, number, number]
  /** Kind of the key: 1 public, 2 secret. The column `key_kind` is read of it. */
  k?: number
  /** Version of the weights. */
  w?: number
  /** The generation that was presented, where it is not the one handed out. */
  had?: number
}

type Plainly = 'scoreReasons' | 'matchedRules' | 'monitorMatches' | 'keyKind' | 'weightsVersion'
export interface Detail extends Pick<StoredEvent, Plainly> {
  readonly signals: Omit<Signals, 'vpnProvider' | 'botType'>
  readonly generation: number
  readonly explanation: Explanation | null
  readonly holder: string | null
  readonly recorded: Recorded | null
}

const KINDS: readonly StoredEvent['keyKind'][] = [null, 'public', 'secret']
const STATES: readonly Signal['state'][] = ['undetermined', 'clear', 'detected']
const USUAL: Signal = { state: 'undetermined', confidence: 0, methods: [], source: 'server', dataAgeSeconds: null }

function packSignal({ state, confidence, methods, source, dataAgeSeconds }: Signal): PackedSignal | null {
  const at = STATES.indexOf(state)
  if (dataAgeSeconds !== null) return [at, confidence, source, methods, dataAgeSeconds]
  if (methods.length > 0) return [at, confidence, source, methods]
  return at === 0 && confidence === 0 && source === 'server' ? null : [at, confidence, source]
}

function unpackSignal(packed: PackedSignal | undefined): Signal {
  if (packed === undefined) return USUAL
  const [at, confidence, source, methods = [], dataAgeSeconds = null] = packed
  return { state: STATES[at] ?? 'undetermined', confidence, methods, source, dataAgeSeconds }
}

function packExplanation({ visitorId, confidence, identity }: StoredEvent): Pick<Packed, 'x' | 'had'> {
  const { explanation, generation, method } = identity
  if (explanation === undefined) return {}
  const { comparison, candidates, evidence, presentedGeneration } = explanation
  const had = presentedGeneration === null || presentedGeneration === generation ? {} : { had: presentedGeneration }
  const [only] = candidates
  const isUsual =
    method === 'token' && candidates.length === 1 && only?.visitorId === visitorId && only.score === confidence
  if (isUsual && evidence.length === 0) return comparison === null ? had : { x: [comparison], ...had }
  if (comparison === null && candidates.length === 0 && evidence.length === 0) return had
  const packed = candidates.map(({ visitorId: id, score }) => [id === visitorId ? '' : id, score] as const)
  return { x: evidence.length === 0 ? [comparison, packed] : [comparison, packed, evidence], ...had }
}

function unpackExplanation({ x, had, gen = 1 }: Packed, event: Recognised): Explanation | null {
  const { visitorId, method, confidence } = event
  const presentedGeneration = had ?? (method === 'token' ? gen : null)
  if (x === undefined && presentedGeneration === null) return null
  const [comparison = null, candidates, evidence = []] = x ?? []
  const own = method === 'token' ? [{ visitorId, score: confidence }] : []
  return {
    candidates: candidates?.map(([id, score]) => ({ visitorId: id === '' ? visitorId : id, score })) ?? own,
    comparison,
    evidence,
    presentedGeneration,
  }
}

function unpackRecorded({ rec }: Packed): Recorded | null {
  if (rec === undefined) return null
  const [totalVisits, firstSeenAt, lastSeenAt] = rec
  return { totalVisits, firstSeenAt, lastSeenAt }
}

/** What a detail is read beside. */
export interface Recognised extends Pick<StoredEvent['identity'], 'method'> {
  readonly visitorId: string
  readonly confidence: number
}

export function packDetail(event: StoredEvent): string {
  const s: Partial<Record<SignalName, PackedSignal>> = {}
  for (const name of SIGNAL_NAMES) {
    const packed = packSignal(event.signals[name])
    if (packed !== null) s[name] = packed
  }
  const { scoreReasons, matchedRules, monitorMatches, identity, keyKind, weightsVersion } = event
  const packed: Packed = { s, ...packExplanation(event) }
  if (scoreReasons.length > 0) packed.why = scoreReasons.map((r) => [r.score, r.reason, r.weight] as const)
  if (matchedRules.length > 0) packed.hit = matchedRules
  if (monitorMatches.length > 0) packed.mon = monitorMatches
  if (identity.generation !== 1) packed.gen = identity.generation
  if (identity.holder !== undefined) packed.own = identity.holder
  if (keyKind !== null) packed.k = KINDS.indexOf(keyKind)
  if (weightsVersion !== null) packed.w = weightsVersion
  const { recorded } = identity
  if (recorded !== undefined) packed.rec = [recorded.totalVisits, recorded.firstSeenAt, recorded.lastSeenAt]
  return JSON.stringify(packed)
}

export function unpackDetail(text: string, event: Recognised): Detail {
  const packed = JSON.parse(text) as Packed
  const signals: Record<string, unknown> = {}
  for (const name of SIGNAL_NAMES) signals[name] = unpackSignal(packed.s?.[name])
  return {
    signals: signals as unknown as Detail['signals'],
    scoreReasons: (packed.why ?? []).map(([score, reason, weight]) => ({ score, reason, weight })),
    matchedRules: packed.hit ?? [],
    monitorMatches: packed.mon ?? [],
    keyKind: KINDS[packed.k ?? 0] ?? null,
    weightsVersion: packed.w ?? null,
    generation: packed.gen ?? 1,
    explanation: unpackExplanation(packed, event),
    holder: packed.own ?? null,
    recorded: unpackRecorded(packed),
  }
}
