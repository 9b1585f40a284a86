// The part of an event that no query filters on, as one JSON text in the row: what equals its usual value is left out,
// because every byte of it is escaped, logged, inserted and compressed.

import {
  type Explanation,
  type PossibleVisitor,
  type Recorded,
  type RuleMatch,
  type ScoreName,
  SIGNAL_NAMES,
  type Signal,
  type SignalName,
  type Signals,
  type StoredEvent,
} from '../domain/event.ts'
import { putAscii, putNumber, putTextWithin, putWithin } from '../lib/json-lines.ts'

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
  /** The known visitor that a new one may be, and how likely that is in ten-thousandths. Columns are read of it. */
  may?: readonly [string, number]
}

type Plainly = 'possible' | 'scoreReasons' | 'matchedRules' | 'monitorMatches' | 'keyKind' | 'weightsVersion'
export interface Detail extends Pick<StoredEvent, Plainly> {
  readonly signals: Omit<Signals, 'vpnProvider' | 'botType'>
  readonly generation: number
  readonly explanation: Explanation | null
  readonly holder: string | null
  readonly recorded: Recorded | null
}

/** Of a chance as it is stored. */
const PARTS = 10_000
const KINDS: readonly StoredEvent['keyKind'][] = [null, 'public', 'secret']
const STATES: readonly Signal['state'][] = ['undetermined', 'clear', 'detected']
const USUAL: Signal = { state: 'undetermined', confidence: 0, methods: [], source: 'server', dataAgeSeconds: null }

/** The name before its signal, as it stands in a row. */
const LABELS = SIGNAL_NAMES.map((name) => `\\"${name}\\":[`)

function writeSignal(label: string, { state, confidence, methods, source, dataAgeSeconds }: Signal): void {
  putAscii(label)
  putNumber(STATES.indexOf(state))
  putAscii(',')
  putNumber(confidence)
  putAscii(',')
  putTextWithin(source)
  if (methods.length > 0 || dataAgeSeconds !== null) {
    putAscii(',')
    writeTexts(methods)
  }
  if (dataAgeSeconds !== null) {
    putAscii(',')
    putNumber(dataAgeSeconds)
  }
  putAscii(']')
}

function writeTexts(texts: readonly string[]): void {
  putAscii('[')
  for (let i = 0; i < texts.length; i++) {
    if (i > 0) putAscii(',')
    putTextWithin(texts[i] as string)
  }
  putAscii(']')
}

const isUsual = ({ state, confidence, methods, source, dataAgeSeconds }: Signal): boolean =>
  state === USUAL.state &&
  confidence === 0 &&
  source === USUAL.source &&
  methods.length === 0 &&
  dataAgeSeconds === null

function unpackSignal(packed: PackedSignal | undefined): Signal {
  if (packed === undefined) return USUAL
  const [at, confidence, source, methods = [], dataAgeSeconds = null] = packed
  return { state: STATES[at] ?? 'undetermined', confidence, methods, source, dataAgeSeconds }
}

type Explained = Pick<StoredEvent, 'visitorId' | 'confidence' | 'identity'>

function writeExplanation({ visitorId, confidence, identity }: Explained, explanation: Explanation): void {
  const { comparison, candidates, evidence, presentedGeneration } = explanation
  const only = candidates.length === 1 ? candidates[0] : undefined
  const isToken = identity.method === 'token' && only?.visitorId === visitorId && only.score === confidence
  const isShort = evidence.length === 0 && (isToken || candidates.length === 0)
  if (comparison !== null || !isShort) {
    putAscii(',\\"x\\":[')
    if (comparison === null) putAscii('null')
    else putTextWithin(comparison)
    if (!isToken || evidence.length > 0) writeCandidates(candidates, visitorId)
    if (evidence.length > 0) {
      putAscii(',')
      writeTexts(evidence)
    }
    putAscii(']')
  }
  if (presentedGeneration !== null && presentedGeneration !== identity.generation) {
    putAscii(',\\"had\\":')
    putNumber(presentedGeneration)
  }
}

function writeCandidates(candidates: Explanation['candidates'], own: string): void {
  putAscii(',[')
  for (let i = 0; i < candidates.length; i++) {
    const { visitorId, score } = candidates[i] as (typeof candidates)[number]
    putAscii(i > 0 ? ',[' : '[')
    putTextWithin(visitorId === own ? '' : visitorId)
    putAscii(',')
    putNumber(score)
    putAscii(']')
  }
  putAscii(']')
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

function unpackPossible({ may }: Packed): PossibleVisitor | null {
  return may === undefined ? null : { visitorId: may[0], confidence: may[1] / PARTS }
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

function writeReasons(reasons: StoredEvent['scoreReasons']): void {
  putAscii(',\\"why\\":[')
  for (let i = 0; i < reasons.length; i++) {
    const { score, reason, weight } = reasons[i] as (typeof reasons)[number]
    putAscii(i > 0 ? ',[' : '[')
    putTextWithin(score)
    putAscii(',')
    putTextWithin(reason)
    putAscii(',')
    putNumber(weight)
    putAscii(']')
  }
  putAscii(']')
}

/** Of matches that rulesets keep: every event that a rule matches has the same one. */
const textsOfMatches = new WeakMap<RuleMatch, string>()

function writeMatches(label: string, matches: readonly RuleMatch[]): void {
  putAscii(label)
  for (let i = 0; i < matches.length; i++) {
    const match = matches[i] as RuleMatch
    let text = textsOfMatches.get(match)
    if (text === undefined) {
      text = JSON.stringify(match)
      textsOfMatches.set(match, text)
    }
    if (i > 0) putAscii(',')
    putWithin(text)
  }
  putAscii(']')
}

/** The detail as it stands between the quotes of its cell. */
export function writeDetail(event: StoredEvent): void {
  const { signals, scoreReasons, matchedRules, monitorMatches, identity, keyKind, weightsVersion, possible } = event
  putAscii('{\\"s\\":{')
  let isFirst = true
  for (let i = 0; i < SIGNAL_NAMES.length; i++) {
    const signal = signals[SIGNAL_NAMES[i] as SignalName]
    if (isUsual(signal)) continue
    if (!isFirst) putAscii(',')
    isFirst = false
    writeSignal(LABELS[i] as string, signal)
  }
  putAscii('}')
  if (identity.explanation !== undefined) writeExplanation(event, identity.explanation)
  if (scoreReasons.length > 0) writeReasons(scoreReasons)
  if (matchedRules.length > 0) writeMatches(',\\"hit\\":[', matchedRules)
  if (monitorMatches.length > 0) writeMatches(',\\"mon\\":[', monitorMatches)
  if (identity.generation !== 1) {
    putAscii(',\\"gen\\":')
    putNumber(identity.generation)
  }
  if (identity.holder !== undefined) {
    putAscii(',\\"own\\":')
    putTextWithin(identity.holder)
  }
  if (keyKind !== null) {
    putAscii(',\\"k\\":')
    putNumber(KINDS.indexOf(keyKind))
  }
  if (weightsVersion !== null) {
    putAscii(',\\"w\\":')
    putNumber(weightsVersion)
  }
  if (identity.recorded !== undefined) writeRecorded(identity.recorded)
  if (possible !== null) writePossible(possible)
  putAscii('}')
}

function writePossible({ visitorId, confidence }: PossibleVisitor): void {
  putAscii(',\\"may\\":[')
  putTextWithin(visitorId)
  putAscii(',')
  putNumber(Math.round(confidence * PARTS))
  putAscii(']')
}

function writeRecorded({ totalVisits, firstSeenAt, lastSeenAt }: Recorded): void {
  putAscii(',\\"rec\\":[')
  putNumber(totalVisits)
  putAscii(',')
  putNumber(firstSeenAt)
  putAscii(',')
  putNumber(lastSeenAt)
  putAscii(']')
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
    possible: unpackPossible(packed),
  }
}
