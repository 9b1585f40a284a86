// What a recognition rested on, kept with the event: which visitors it weighed and how each attribute of the best one
// compared. One character per attribute, so that it costs a row some twenty bytes.

import type { Agreement, Explanation } from '../domain/event.ts'
import type { TokenClaims } from '../domain/identify.ts'
import { partsOf } from './address.ts'
import { SAME_ADDRESS, SAME_NETWORK } from './agreement.ts'
import type { Attributes } from './attributes.ts'
import { isAlternate, networkOf } from './compare.ts'
import type { MatchResult } from './matcher.ts'
import { RATIO, SCREEN, samePanel, VALUE_NAMES } from './profile.ts'
import type { VisitorState } from './visitor.ts'

const EXPLAINED_CANDIDATES_MAX = 3
/** Recognition notices fewer things than this about any visit. */
const EVIDENCE_MAX = 8
const SEPARATOR = '|'
const CODES: Readonly<Record<Agreement, string>> = { agrees: '=', alternates: '~', differs: '!', unknown: '?' }
const [AGREES, ALTERNATES, DIFFERS, UNKNOWN] = (['agrees', 'alternates', 'differs', 'unknown'] as const).map((one) =>
  CODES[one].charCodeAt(0),
) as [number, number, number, number]
// Of the comparison that is written now: a text put together of characters leaves all of its beginnings behind.
const written = Buffer.alloc(VALUE_NAMES.length)
const AGREEMENTS = new Map(Object.entries(CODES).map(([agreement, code]) => [code, agreement as Agreement]))
const VERSIONS = { same: '=', newer: '>', older: '<', unknown: '?' } as const
/** That of nobody: who provides the network is not told. */
const NO_PROVIDER = -1
const NETWORKS = { address: 'a', network: 'n', other: 'o' } as const

const nameOf = (codes: Readonly<Record<string, string>>, code: string | undefined): string =>
  Object.keys(codes).find((name) => codes[name] === code) ?? 'unknown'

/** `visitor` as it was before this visit. Null for one of whom nothing is known to compare with. */
function compare(visitor: VisitorState, { profile: seen }: Attributes, ip: string): string | null {
  const known = visitor.profile
  if (known === null) return null
  const a = known.values[SCREEN]
  const b = seen.values[SCREEN]
  const ratioA = known.values[RATIO]
  const ratioB = seen.values[RATIO]
  const rescaled = a != null && b != null && ratioA != null && ratioB != null && samePanel(a, ratioA, b, ratioB)
  for (let i = 0; i < VALUE_NAMES.length; i++) {
    const old = known.values[i]
    const now = seen.values[i]
    if (old == null || now == null) written[i] = UNKNOWN
    else if (old === now) written[i] = AGREES
    else if (rescaled && (i === SCREEN || i === RATIO)) written[i] = ALTERNATES
    else written[i] = isAlternate(visitor, i, now) ? ALTERNATES : DIFFERS
  }
  const from = known.major
  const to = seen.major
  const version = from === null || to === null ? 'unknown' : to === from ? 'same' : to > from ? 'newer' : 'older'
  return `${written.toString('latin1')}${SEPARATOR}${VERSIONS[version]}${NETWORKS[networkNameOf(visitor, ip)]}`
}

function networkNameOf(visitor: VisitorState, ip: string): keyof typeof NETWORKS {
  const { lineHash, subnetHash, masked } = partsOf(ip)
  const match = networkOf(visitor, lineHash, subnetHash, NO_PROVIDER, masked)
  return match === SAME_ADDRESS ? 'address' : match === SAME_NETWORK ? 'network' : 'other'
}

/**
 * The explanation of one recognition. `known`: the visitors it was made from, where it took none of them. Must be called before any of
 * them takes in the visit.
 */
export function explain(
  recognition: MatchResult,
  known: readonly VisitorState[],
  attributes: Attributes,
  ip: string,
  token: TokenClaims | null,
): Explanation {
  const { visitor, scores, evidence } = recognition
  const best = visitor ?? known.find(({ id }) => id === scores[0]?.visitorId) ?? null
  const told = scores.length > EXPLAINED_CANDIDATES_MAX ? scores.slice(0, EXPLAINED_CANDIDATES_MAX) : scores
  const candidates = told.map(({ visitorId, posterior }) => ({ visitorId, score: posterior }))
  return {
    candidates,
    comparison: best === null ? null : compare(best, attributes, ip),
    evidence: evidence.length > EVIDENCE_MAX ? evidence.slice(0, EVIDENCE_MAX) : evidence,
    presentedGeneration: token?.generation ?? null,
  }
}

export interface ExplainedComparison {
  /** Of every attribute that can be compared. */
  readonly attributes: Readonly<Record<string, Agreement>>
  /** same | newer | older | unknown, against the one last seen. */
  readonly browserVersion: string
  /** address | network | other | unknown: whether the visitor was there before. */
  readonly network: string
}

/** What `explain` wrote, by name. */
export function readComparison(text: string): ExplainedComparison {
  const [codes = '', rest = ''] = text.split(SEPARATOR)
  const attributes: Record<string, Agreement> = {}
  VALUE_NAMES.forEach((name, i) => {
    attributes[name] = AGREEMENTS.get(codes[i] ?? '') ?? 'unknown'
  })
  return { attributes, browserVersion: nameOf(VERSIONS, rest[0]), network: nameOf(NETWORKS, rest[1]) }
}
