// The part of an event that no query filters on, as one JSON text in the row: what equals its usual value is left out,
// because every byte of it is escaped, logged, inserted and compressed.

import {
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
}

export interface Detail extends Pick<StoredEvent, 'scoreReasons' | 'matchedRules' | 'monitorMatches'> {
  readonly signals: Omit<Signals, 'vpnProvider' | 'botType'>
  readonly generation: number
}

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

export function packDetail(event: StoredEvent): string {
  const s: Partial<Record<SignalName, PackedSignal>> = {}
  for (const name of SIGNAL_NAMES) {
    const packed = packSignal(event.signals[name])
    if (packed !== null) s[name] = packed
  }
  const { scoreReasons, matchedRules, monitorMatches, identity } = event
  const packed: Packed = { s }
  if (scoreReasons.length > 0) packed.why = scoreReasons.map((r) => [r.score, r.reason, r.weight] as const)
  if (matchedRules.length > 0) packed.hit = matchedRules
  if (monitorMatches.length > 0) packed.mon = monitorMatches
  if (identity.generation !== 1) packed.gen = identity.generation
  return JSON.stringify(packed)
}

export function unpackDetail(text: string): Detail {
  const packed = JSON.parse(text) as Packed
  const signals: Record<string, unknown> = {}
  for (const name of SIGNAL_NAMES) signals[name] = unpackSignal(packed.s?.[name])
  return {
    signals: signals as unknown as Detail['signals'],
    scoreReasons: (packed.why ?? []).map(([score, reason, weight]) => ({ score, reason, weight })),
    matchedRules: packed.hit ?? [],
    monitorMatches: packed.mon ?? [],
    generation: packed.gen ?? 1,
  }
}
