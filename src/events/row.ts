// The row format: StoredEvent ⇄ one JSONCompactEachRow line of the `events` table. The log carries these lines, the sink
// passes them on untouched, and reads turn what ClickHouse returns back with the same table of columns.

import type { ChallengeType, Env, IdentityMethod, StoredEvent, Verdict } from '../domain/event.ts'
import { SIGNAL_NAMES } from '../domain/event.ts'
import { canonicalIp } from '../domain/ip.ts'
import { degrees, unpackVelocity } from './cells.ts'
import { unpackDetail } from './detail.ts'
import { cutLines, linesEnd, lineText } from './lines.ts'
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

export type Cell = string | number | boolean | readonly string[] | readonly number[]
const orNull = (text: string): string | null => (text === '' ? null : text)

/** One row as an array in the order of COLUMNS. */
export function fromRow(cells: readonly Cell[]): StoredEvent {
  let at = 0
  const text = () => String(cells[at++] ?? '')
  const number = () => Number(cells[at++])
  const flag = () => cells[at++] === true
  const list = <T extends string | number = string>() => (cells[at++] ?? []) as readonly T[]

  const workspace = text()
  const env = text() as Env
  const timestamp = number()
  const requestId = text()
  const visitorId = text()
  const visitorFound = flag()
  const firstSeenAt = number()
  const lastSeenAt = number()
  const confidence = number() / 10_000
  const [platform, osVersion, browser, browserVersion, gpu, type] = [text(), text(), text(), text(), text(), text()]
  const [model, appVersion, language, timezone] = [text(), text(), text(), text()]
  const [w, h] = [number(), number()]
  at += SIGNAL_NAMES.length
  const [vpnProvider, botType] = [orNull(text()), orNull(text())]
  const scores = {
    abuse: number() / 10_000,
    ato: number() / 10_000,
    bot: number() / 10_000,
    suspect: number() / 100,
  }
  const shownAddress = text()
  const address = canonicalIp(shownAddress) ?? shownAddress
  const [city, region, country] = [text(), text(), text()]
  const located = flag()
  const [lat, lng, ipTimezone] = [number(), number(), orNull(text())]
  const [asn, asnName] = [number(), text()]
  const [datacenter, blocklisted, blocklists] = [flag(), flag(), list()]
  const verdict = text()
  const challengeType = orNull(text()) as ChallengeType | null
  const [ruleId, ruleName, rulePriority] = [text(), text(), number()]
  at += 1
  const rulesRevision = number()
  const [linkedId, email, label, tag, url] = [text(), text(), text(), text(), text()]
  at += 2
  const [totalVisits, linkedAccounts] = [number(), number()]
  const method = text() as IdentityMethod
  const [anonymitySet, candidates] = [number(), number()]
  const velocity = unpackVelocity(list<number>())
  const evaluationError = orNull(text())
  const detail = unpackDetail(text(), { visitorId, method, confidence })

  return {
    workspace,
    env,
    requestId,
    visitorId,
    visitorFound,
    confidence,
    timestamp,
    firstSeenAt,
    lastSeenAt,
    device: {
      platform,
      osVersion: orNull(osVersion),
      browser,
      browserVersion: orNull(browserVersion),
      gpu: orNull(gpu),
      type,
      screen: w > 0 && h > 0 ? { w, h } : null,
      model: orNull(model),
      appVersion: orNull(appVersion),
      language: orNull(language),
      timezone: orNull(timezone),
    },
    signals: { ...detail.signals, vpnProvider, botType },
    scores,
    scoreReasons: detail.scoreReasons,
    ip: {
      address,
      city: orNull(city),
      region: orNull(region),
      country: orNull(country),
      lat: located ? degrees(lat) : null,
      lng: located ? degrees(lng) : null,
      timezone: ipTimezone,
      asn: asn === 0 ? null : asn,
      asnName: orNull(asnName),
      datacenter,
      blocklisted,
      blocklists,
    },
    verdict: verdict === 'none' ? null : (verdict as Verdict),
    challengeType,
    matchedRule: ruleId === '' ? null : { id: ruleId, name: ruleName, priority: rulePriority },
    matchedRules: detail.matchedRules,
    monitorMatches: detail.monitorMatches,
    rulesRevision,
    keyKind: detail.keyKind,
    weightsVersion: detail.weightsVersion,
    linkedId: orNull(linkedId),
    email: orNull(email),
    tag: JSON.parse(tag) as Record<string, unknown>,
    url: orNull(url),
    identity: {
      method,
      anonymitySet,
      candidates,
      generation: detail.generation,
      ...(detail.holder === null ? {} : { holder: detail.holder }),
      ...(detail.recorded === null ? {} : { recorded: detail.recorded }),
      ...(detail.explanation === null ? {} : { explanation: detail.explanation }),
    },
    visitor: { totalVisits, linkedAccounts, ageSeconds: Math.max(0, Math.floor((timestamp - firstSeenAt) / 1000)) },
    velocity,
    label: label === 'none' ? null : (label as 'fraud' | 'legitimate'),
    evaluationError,
  }
}

const TIMES: readonly string[] = ['ts', 'first_seen_at', 'last_seen_at']

/** The SELECT list whose values, in order, `fromRow` reads. */
export const SELECT_COLUMNS = COLUMNS.map((c) =>
  TIMES.includes(c) ? `toUnixTimestamp64Milli(${c}) AS ${c}_ms` : c,
).join(', ')
