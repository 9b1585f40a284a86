// The row format: StoredEvent ⇄ one JSONCompactEachRow line of the `events` table. The log carries these lines, the sink
// passes them on untouched, and reads turn what ClickHouse returns back with the same table of columns.

import type { ChallengeType, Env, IdentityMethod, StoredEvent, Verdict } from '../domain/event.ts'
import { canonicalIp } from '../domain/ip.ts'
import { cutLines, linesEnd, lineText } from '../lib/json-lines.ts'
import { degrees, readTag, unpackVelocity } from './cells.ts'
import { unpackDetail } from './detail.ts'
import { writeRow } from './write-row.ts'

export const EVENTS_TABLE = 'events'

/** In the order of the line. Moments are milliseconds. */
export const COLUMNS = [
  'workspace_id',
  'env',
  'ts',
  'request_id',
  'visitor_id',
  'visitor_found',
  'first_seen_at',
  'last_seen_at',
  'confidence',
  'platform',
  'os_version',
  'browser',
  'browser_version',
  'gpu',
  'device_type',
  'device_model',
  'app_version',
  'language',
  'timezone',
  'screen_w',
  'screen_h',
  'sig_bot',
  'sig_vpn',
  'sig_incognito',
  'sig_tampered',
  'sig_emulator',
  'sig_proxy',
  'sig_tor',
  'sig_rooted_device',
  'sig_cloned_app',
  'vpn_provider',
  'bot_type',
  'score_abuse',
  'score_ato',
  'score_bot',
  'score_suspect',
  'ip',
  'city',
  'region',
  'country',
  'has_location',
  'lat',
  'lng',
  'ip_timezone',
  'asn',
  'asn_name',
  'datacenter',
  'ip_blocklisted',
  'blocklists',
  'verdict',
  'challenge_type',
  'rule_id',
  'rule_name',
  'rule_priority',
  'matched_rules',
  'rules_revision',
  'linked_id',
  'email',
  'label',
  'tag',
  'url',
  'url_host',
  'url_path',
  'total_visits',
  'linked_accounts',
  'identity_method',
  'anonymity_set',
  'candidates',
  'velocity',
  'evaluation_error',
  'detail',
  'log_partition',
  'log_seq',
] as const

/** `logPartition` and `logSeq` name the identification the event was made of: unique, and what lost marks are recovered from. */
export function toRow(e: StoredEvent, logPartition: number, logSeq: number): string {
  const from = linesEnd()
  writeRow(e, logPartition, logSeq)
  const text = lineText(from, linesEnd() - 1)
  cutLines(from)
  return text
}

export type RowCell = string | number | boolean | readonly string[] | readonly number[]
const orNull = (text: string): string | null => (text === '' ? null : text)

type Column = (typeof COLUMNS)[number]
/** Cells that are no text. */
interface Typed {
  env: Env
  verdict: Verdict | 'none'
  label: NonNullable<StoredEvent['label']> | 'none'
  identity_method: IdentityMethod
  blocklists: readonly string[]
  velocity: readonly number[]
}
type Flag = 'visitor_found' | 'has_location' | 'datacenter' | 'ip_blocklisted'
type Count =
  | 'ts'
  | 'first_seen_at'
  | 'last_seen_at'
  | 'confidence'
  | 'screen_w'
  | 'screen_h'
  | `score_${'abuse' | 'ato' | 'bot' | 'suspect'}`
  | 'lat'
  | 'lng'
  | 'asn'
  | 'rule_priority'
  | 'rules_revision'
  | 'total_visits'
  | 'linked_accounts'
  | 'anonymity_set'
  | 'candidates'
type CellOf<C> = C extends keyof Typed ? Typed[C] : C extends Flag ? boolean : C extends Count ? number : string

type Columns = typeof COLUMNS
type Row = { readonly [Place in keyof Columns]: CellOf<Columns[Place]> }
/** Of each column its place in a row, known to the compiler: a cell that is read has the type of its column. */
type Places = {
  readonly [Place in keyof Columns as Columns[Place] & Column]: Place extends `${infer N extends number}` ? N : never
}
const AT = Object.fromEntries(COLUMNS.map((column, place) => [column, place])) as unknown as Places

/** One row as an array in the order of COLUMNS. */
export function fromRow(cells: readonly RowCell[]): StoredEvent {
  const row = cells as unknown as Row
  const visitorId = row[AT.visitor_id]
  const method = row[AT.identity_method]
  const confidence = row[AT.confidence] / 10_000
  const timestamp = row[AT.ts]
  const firstSeenAt = row[AT.first_seen_at]
  const [w, h] = [row[AT.screen_w], row[AT.screen_h]]
  const located = row[AT.has_location]
  const ruleId = row[AT.rule_id]
  const [verdict, label] = [row[AT.verdict], row[AT.label]]
  const detail = unpackDetail(row[AT.detail], { visitorId, method, confidence })

  return {
    workspace: row[AT.workspace_id],
    env: row[AT.env],
    requestId: row[AT.request_id],
    visitorId,
    visitorFound: row[AT.visitor_found],
    confidence,
    possible: detail.possible,
    timestamp,
    firstSeenAt,
    lastSeenAt: row[AT.last_seen_at],
    device: {
      platform: row[AT.platform],
      osVersion: orNull(row[AT.os_version]),
      browser: row[AT.browser],
      browserVersion: orNull(row[AT.browser_version]),
      gpu: orNull(row[AT.gpu]),
      type: row[AT.device_type],
      screen: w > 0 && h > 0 ? { w, h } : null,
      model: orNull(row[AT.device_model]),
      appVersion: orNull(row[AT.app_version]),
      language: orNull(row[AT.language]),
      timezone: orNull(row[AT.timezone]),
    },
    signals: { ...detail.signals, vpnProvider: orNull(row[AT.vpn_provider]), botType: orNull(row[AT.bot_type]) },
    scores: {
      abuse: row[AT.score_abuse] / 10_000,
      ato: row[AT.score_ato] / 10_000,
      bot: row[AT.score_bot] / 10_000,
      suspect: row[AT.score_suspect] / 100,
    },
    scoreReasons: detail.scoreReasons,
    ip: {
      address: canonicalIp(row[AT.ip]) ?? row[AT.ip],
      city: orNull(row[AT.city]),
      region: orNull(row[AT.region]),
      country: orNull(row[AT.country]),
      lat: located ? degrees(row[AT.lat]) : null,
      lng: located ? degrees(row[AT.lng]) : null,
      timezone: orNull(row[AT.ip_timezone]),
      asn: row[AT.asn] === 0 ? null : row[AT.asn],
      asnName: orNull(row[AT.asn_name]),
      datacenter: row[AT.datacenter],
      blocklisted: row[AT.ip_blocklisted],
      blocklists: row[AT.blocklists],
    },
    verdict: verdict === 'none' ? null : verdict,
    challengeType: orNull(row[AT.challenge_type]) as ChallengeType | null,
    matchedRule: ruleId === '' ? null : { id: ruleId, name: row[AT.rule_name], priority: row[AT.rule_priority] },
    matchedRules: detail.matchedRules,
    monitorMatches: detail.monitorMatches,
    rulesRevision: row[AT.rules_revision],
    keyKind: detail.keyKind,
    weightsVersion: detail.weightsVersion,
    linkedId: orNull(row[AT.linked_id]),
    email: orNull(row[AT.email]),
    tag: readTag(row[AT.tag]),
    url: orNull(row[AT.url]),
    identity: {
      method,
      anonymitySet: row[AT.anonymity_set],
      candidates: row[AT.candidates],
      generation: detail.generation,
      ...(detail.holder === null ? {} : { holder: detail.holder }),
      ...(detail.recorded === null ? {} : { recorded: detail.recorded }),
      ...(detail.explanation === null ? {} : { explanation: detail.explanation }),
    },
    visitor: {
      totalVisits: row[AT.total_visits],
      linkedAccounts: row[AT.linked_accounts],
      ageSeconds: Math.max(0, Math.floor((timestamp - firstSeenAt) / 1_000)),
    },
    velocity: unpackVelocity(row[AT.velocity]),
    label: label === 'none' ? null : label,
    evaluationError: orNull(row[AT.evaluation_error]),
  }
}

const TIMES: readonly string[] = ['ts', 'first_seen_at', 'last_seen_at']

/** The SELECT list whose values, in order, `fromRow` reads. */
export const SELECT_COLUMNS = COLUMNS.map((c) =>
  TIMES.includes(c) ? `toUnixTimestamp64Milli(${c}) AS ${c}_ms` : c,
).join(', ')
