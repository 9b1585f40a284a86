// Made-up occurrences of every type, for tests of a receiver: marked as tests, about nobody.

import type { EventType } from '../domain/webhook.ts'
import type { Plan } from '../domain/workspace.ts'
import { isoTime, scoresVisible } from '../events/present.ts'
import { derivedUlid } from '../records/deliveries.ts'
import type { Occurrence } from './envelope.ts'

const SIGNALS = { bot: { detected: false, type: null }, vpn: { detected: false, provider: null } }
/** Those of a device of which nothing is suspected that are told as a word. */
export const SIGNALS_OFF = {
  tor: false,
  incognito: false,
  tampered: false,
  emulator: false,
  rootedDevice: false,
  clonedApp: false,
}
const PLAIN_SIGNALS = {
  bot: { detected: false },
  vpn: { detected: false, provider: null },
  incognito: false,
  tampered: false,
  emulator: false,
  proxy: false,
  tor: false,
  rootedDevice: false,
  clonedApp: false,
}
const NETWORK = { asn: null, asnName: null, datacenter: false, blocklisted: false, blocklists: [] }
const MORE_OF_DEVICE = {
  os: 'Linux',
  osVersion: null,
  screen: { w: 1920, h: 1080 },
  model: null,
  appVersion: null,
  timezone: null,
}
/** What else the event of an identification has. */
const REST = {
  possibleVisitorId: null,
  possibleConfidence: null,
  signalDetails: {},
  challengeType: null,
  matchedRule: null,
  monitorMatches: [],
  rulesRevision: 0,
  weightsVersion: null,
  request: { keyKind: 'public' },
  linkedId: null,
  email: null,
  tag: {},
  url: null,
  identity: { method: 'new', anonymitySet: 1, candidates: 0 },
  label: null,
}
const SCORES = { abuse: 0.01, ato: 0.01, bot: 0.01, suspect: 1 }
const VISITOR = 'pv_00000000000000000000'
const OTHER = 'pv_00000000000000000001'
const WHY = { requestId: null, confidence: null }
const RULE = { id: 'rul_00000000000000000000', name: 'Sample rule', priority: 10 }
const LIST = { listId: 'lst_00000000000000000000', listName: 'sample_list', value: VISITOR }

/** `unique` sets it apart from other tests. Without scores where the plan has none. */
export function sampleOf(type: EventType, at: number, unique: string, plan: Plan = 'enterprise'): Occurrence {
  const time = isoTime(at)
  const requestId = `req_${derivedUlid(at, unique)}`
  const head = { requestId, visitorId: VISITOR }
  const list = { change: type === 'list.entry.added' ? 'added' : 'expired', ...LIST }
  const isList = type.startsWith('list.')
  const plain = isList
    ? {
        requestId: null,
        visitorId: null,
        verdict: null,
        signals: null,
        list: { id: LIST.listId, name: LIST.listName },
        entry: LIST.value,
        change: list.change,
      }
    : { ...head, verdict: 'allow', signals: PLAIN_SIGNALS }
  return {
    eventId: `evt_${derivedUlid(at, `test/${unique}`)}`,
    type,
    at,
    data: { ...dataOf(type, head, time, scoresVisible(plan) ? { scores: SCORES } : {}), test: true },
    plainData: { ...plain, test: true },
  }
}

interface Head {
  readonly requestId: string
  readonly visitorId: string
}

function dataOf(type: EventType, head: Head, time: string, scores: { readonly scores?: typeof SCORES }) {
  const ip = '203.0.113.*'
  const system = { platform: 'Linux', browser: 'Firefox 140', gpu: null, type: 'desktop' }
  const device = { ...system, screenRes: '1920x1080', language: 'en' }
  const place = { city: null, region: null, country: null, latitude: null, longitude: null, timezone: null }
  const firstSeenAt = time
  switch (type) {
    case 'identification.complete':
      return {
        ...head,
        visitorFound: false,
        confidence: 1,
        firstSeenAt,
        lastSeenAt: time,
        visitCount: 1,
        ip,
        geo: { ...place, ...NETWORK },
        timestamp: time,
        ...REST,
        device: { ...device, ...MORE_OF_DEVICE },
        signals: { ...SIGNALS, proxy: { detected: false, type: null }, ...SIGNALS_OFF },
        ...scores,
        verdict: 'allow',
        matchedRules: [],
      }
    case 'verdict.allow':
    case 'verdict.block':
    case 'verdict.challenge': {
      const verdict = type.slice('verdict.'.length)
      const challenge = verdict === 'challenge' ? { challengeType: 'captcha' } : {}
      return { ...head, linkedId: null, verdict, matchedRule: RULE, ...scores, ip, timestamp: time, ...challenge }
    }
    case 'rule.matched':
      return { ...head, rule: { ...RULE, verdict: 'allow' }, deciding: true, timestamp: time }
    case 'visitor.new':
      return { ...head, firstSeenAt, device, ip, geo: place }
    case 'visitor.returning':
      return { ...head, firstSeenAt, visitCount: 2, previousVerdicts: { allow: 1, challenge: 0, block: 0 } }
    case 'visitor.merged':
      return { visitorId: head.visitorId, mergedVisitorId: OTHER, by: 'people', ...WHY, timestamp: time }
    case 'signal.bot.detected':
      return { ...head, bot: { type: 'headless', methods: ['webdriver'], confidence: 1 } }
    case 'list.entry.added':
      return { ...LIST, expiresAt: null, source: 'api', ruleId: null, requestId: null }
    case 'list.entry.expired':
      return { ...LIST, addedAt: time, ttl: 3_600 }
    case 'alert.triggered':
      return {
        alert: { id: 'alr_00000000000000000000', name: 'Sample alert', metric: 'events', threshold: 100 },
        value: 101,
        windowStart: time,
        windowEnd: time,
      }
  }
}
