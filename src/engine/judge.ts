// One identification judged, pure: who it is, what its signals and scores are, what the rules say. Everything it needs to
// know is in its arguments.

import { hash } from 'node:crypto'
import type { Device, StoredEvent } from '../domain/event.ts'
import { quantise4 } from '../domain/event.ts'
import { type IdentifyBody, type IdentifyMeta, URL_CHARS_STORED_MAX } from '../domain/identify.ts'
import { hash53, requestTime } from '../domain/ids.ts'
import { type Attributes, deviceOf, readAttributes } from '../identity/attributes.ts'
import { matchKeys } from '../identity/keys.ts'
import { countAccounts, knowsAccount } from '../identity/linked-accounts.ts'
import { recognise } from '../identity/matcher.ts'
import type { Parsers } from '../identity/parsers.ts'
import { newVisitor, recordVerdict, recordVisit, type VisitorState } from '../identity/visitor.ts'
import type { AddressFacts } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import type { DecidedEffect } from '../records/effects.ts'
import { decodeIdentification } from '../records/identification.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import type { Frame } from './frames.ts'
import { ipFacts } from './ip-facts.ts'
import { scoreEvent } from './scores.ts'
import { detectIncognito } from './signals/incognito.ts'
import { applyMock, mockSignals } from './signals/mock.ts'
import { detectSignals } from './signals/signals.ts'

/** One decoded identification. */
export interface Case {
  readonly seq: number
  readonly meta: IdentifyMeta
  readonly body: IdentifyBody
  /** The event's time, milliseconds: the one inside the requestId. */
  readonly atMs: number
  readonly ip: string
  /** What the tables know of it. */
  readonly address: AddressFacts
  readonly userAgent: string
  readonly headers: Readonly<Record<string, string>>
  readonly attributes: Attributes
  /** null: the profile says too little to look anyone up by it. */
  readonly exactKey: string | null
  /** The exact-profile key if there is one, then the blocking keys. */
  readonly keys: readonly string[]
  /** 0 without a nonce. */
  readonly nonceHash: number
  readonly bodyHash: number
}

/** What is known of visitors this one may be. */
export interface Candidates {
  readonly tokenVisitor: VisitorState | null
  readonly exact: readonly VisitorState[]
  readonly linked: readonly VisitorState[]
}

export interface Judgement {
  readonly event: StoredEvent
  readonly visitor: VisitorState
  readonly logs: readonly RuleLog[]
  readonly effects: readonly DecidedEffect[]
  readonly effectsSkipped: number
}

/** A `log` side effect of the deciding rule, or of a monitored one. */
export interface RuleLog {
  readonly requestId: string
  readonly ruleId: string
  readonly index: number
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
}

type Draft = { -readonly [Field in keyof StoredEvent]: StoredEvent[Field] }

const utf8 = new TextDecoder('utf-8', { fatal: true })
const LONE_SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/

/** Lone surrogates survive neither UTF-8 nor ClickHouse: they become U+FFFD before anything reads them. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item)]))
}

function parseBody(bytes: Uint8Array): IdentifyBody {
  const text = utf8.decode(bytes)
  const body = JSON.parse(text) as IdentifyBody
  return LONE_SURROGATE_ESCAPE.test(text) ? (wellFormed(body) as IdentifyBody) : body
}

/** The first 48 bits of SHA-1, as a number. */
function bodyHashOf(bytes: Uint8Array): number {
  return Number.parseInt(hash('sha1', bytes, 'hex').slice(0, 12), 16)
}

/** Throws when the bytes are no identification at all. */
export function openCase(frame: Frame, parsers: Parsers, locate: (ip: string) => AddressFacts): Case {
  const { meta, body: bytes } = decodeIdentification(frame.bytes)
  const body = parseBody(bytes)
  const { ip, headers } = meta
  const userAgent = body.userAgent ?? headers['user-agent'] ?? ''
  const attributes = readAttributes(body, headers, userAgent, parsers)
  const { exact, blocking } = matchKeys(attributes, ip)
  const hasNonce = body.nonce !== undefined
  return {
    seq: frame.seq,
    meta,
    body,
    atMs: must(requestTime(meta.requestId), 'a request id with a time'),
    ip,
    address: locate(ip),
    userAgent,
    headers,
    attributes,
    exactKey: exact,
    keys: exact === null ? blocking : [exact, ...blocking],
    nonceHash: hasNonce ? hash53(`${meta.workspace}/${meta.env}/${body.nonce}`) : 0,
    bodyHash: hasNonce ? bodyHashOf(bytes) : 0,
  }
}

/** As a row can keep it: texts were cut to length, which can halve a surrogate pair, and an empty text is an absent one. */
function storable(device: Device): Device {
  const text = (value: string | null) => (value === null || value === '' ? null : value.toWellFormed())
  return {
    platform: device.platform,
    osVersion: text(device.osVersion),
    browser: text(device.browser) ?? 'other',
    browserVersion: text(device.browserVersion),
    gpu: text(device.gpu),
    type: device.type,
    screen: device.screen,
    model: text(device.model),
    appVersion: text(device.appVersion),
    language: text(device.language),
    timezone: text(device.timezone),
  }
}

/** `drawId` gives a new visitor id whose home is this partition. */
export function judge(c: Case, candidates: Candidates, ruleset: CompiledRuleset, drawId: () => string): Judgement {
  const { meta, body, attributes, atMs, ip } = c
  const mock = body.mock
  const email = body.email === undefined ? null : body.email.trim().toLowerCase()
  const linkedId = body.linkedId ?? null

  const incognito = detectIncognito(attributes).state === 'detected'
  const { tokenVisitor, exact, linked } = candidates
  const { token, tokenForged } = meta
  const recognition = recognise({ attributes, ip, atMs, token, tokenVisitor, tokenForged, exact, linked, incognito })
  // A genuine token names a visitor even when our memory of it is gone.
  const restored = token !== null && tokenVisitor === null && recognition.visitor === null
  const before =
    recognition.visitor ?? (restored ? newVisitor(token.visitorId, token.issuedAt) : newVisitor(drawId(), atMs))
  const generation = restored ? token.generation : recognition.generation
  const newForAccount = linkedId !== null && !knowsAccount(before.accounts, linkedId)
  const linkedAccounts = countAccounts(before.accounts) + (newForAccount ? 1 : 0)

  const ipOfEvent = ipFacts(ip, c.address, mock?.country)
  const network = {
    address: c.address,
    country: ipOfEvent.country,
    timezone: ipOfEvent.timezone,
    atMs,
    nowMs: meta.acceptedAt,
  }
  const detected = mockSignals(detectSignals({ attributes, evidence: recognition.evidence, network }), mock)
  const scored = scoreEvent({
    signals: detected,
    confidence: recognition.confidence,
    hasAccount: linkedId !== null,
    newDeviceForAccount: linkedId === null ? null : newForAccount,
    linkedAccounts,
    possibleVisitor: recognition.evidence.includes('possible_visitor'),
    listed: false,
  })
  const { signals, scores } = applyMock(detected, scored.scores, mock)

  const firstSeenAt = Math.min(before.firstSeenAt, atMs)
  // One object of one shape, filled in two steps: a copy of this many fields costs as much as evaluating the rules.
  const event: Draft = {
    workspace: meta.workspace,
    env: meta.env,
    requestId: meta.requestId,
    visitorId: before.id,
    visitorFound: recognition.visitor !== null || restored,
    confidence: quantise4(recognition.confidence),
    timestamp: atMs,
    firstSeenAt,
    lastSeenAt: Math.max(before.lastSeenAt, atMs),
    device: storable(deviceOf(attributes, body)),
    signals,
    scores,
    scoreReasons: scored.reasons,
    ip: ipOfEvent,
    linkedId,
    email,
    tag: (body.tag ?? {}) as Record<string, unknown>,
    url: body.url?.slice(0, URL_CHARS_STORED_MAX).toWellFormed() || null,
    identity: {
      method: restored ? 'token' : recognition.method,
      anonymitySet: recognition.anonymitySet,
      candidates: recognition.candidates,
      generation,
    },
    visitor: {
      totalVisits: before.totalVisits + 1,
      linkedAccounts,
      ageSeconds: Math.max(0, Math.floor((atMs - firstSeenAt) / 1000)),
    },
    velocity: null,
    verdict: null,
    challengeType: null,
    matchedRule: null,
    matchedRules: [],
    monitorMatches: [],
    rulesRevision: ruleset.revision,
    label: null,
    evaluationError: null,
  }
  const outcome = ruleset.evaluate(event, { newDeviceForLinkedId: newForAccount })
  event.verdict = outcome.verdict
  event.challengeType = outcome.challengeType
  event.matchedRule = outcome.matchedRule
  event.matchedRules = outcome.matchedRules
  event.monitorMatches = outcome.monitorMatches
  const visitor = recordVisit(before, {
    atMs,
    ip,
    attributes,
    device: event.device,
    method: event.identity.method,
    token: event.identity.method === 'token' ? token : null,
    generation,
    linkedId,
  })
  recordVerdict(visitor, outcome.verdict)
  const { effects, effectsSkipped } = outcome
  const logs = outcome.logs.map((log) => ({ requestId: meta.requestId, ...log }))
  return { event, visitor, logs, effects, effectsSkipped }
}
