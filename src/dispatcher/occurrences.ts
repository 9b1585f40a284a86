// From an event to what its subscribers are told: one occurrence per type, with the data of the contract, masked as every output.

import type { StoredEvent, Verdict } from '../domain/event.ts'
import { maskIp } from '../domain/ip.ts'
import type { EventType } from '../domain/webhook.ts'
import type { Plan } from '../domain/workspace.ts'
import { isoTime, presentEvent, presentSignals, scoresVisible } from '../events/present.ts'
import type { Aliasing } from '../records/aliases.ts'
import { derivedUlid } from '../records/deliveries.ts'
import type { Occurrence } from './envelope.ts'

/** An occurrence with what filters ask. */
export interface Matchable {
  readonly occurrence: Occurrence
  readonly verdict: Verdict | null
  readonly ruleId: string | null
  /** null: nobody looked for bots. */
  readonly botDetected: boolean | null
}

export interface OccurrenceContext {
  /** When it was accepted, milliseconds: what happened then is told as of then. */
  readonly at: number
  readonly plan: Plan
  /** Verdicts of the visitor before this event. */
  readonly previousVerdicts: () => Readonly<Record<Verdict, number>>
  readonly wants: (type: EventType) => boolean
  /** Of whoever identified. */
  readonly trace?: string | undefined
}

type Data = Readonly<Record<string, unknown>>

export function occurrencesOf(event: StoredEvent, context: OccurrenceContext): Matchable[] {
  const { at, plan, wants, trace } = context
  const { requestId, visitorId, verdict } = event
  const isBot = event.signals.bot.state === 'detected'
  const found: Matchable[] = []
  function add(type: EventType, data: () => Data, rule: string | null = event.matchedRule?.id ?? null): void {
    if (!wants(type)) return
    const what = `${event.workspace}/${event.env}/${event.requestId}/${type}${type === 'rule.matched' ? `/${rule}` : ''}`
    const eventId = `evt_${derivedUlid(at, what)}`
    found.push({
      occurrence: {
        eventId,
        type,
        at,
        data: data(),
        ...(trace === undefined ? {} : { trace }),
        // Only subscribers of shape A are shown it.
        get plainData() {
          return { requestId, visitorId, verdict, signals: presentSignals(event) }
        },
      },
      verdict: event.verdict,
      ruleId: rule,
      botDetected: isBot,
    })
  }

  const head = { requestId: event.requestId, visitorId: event.visitorId }
  const timestamp = isoTime(event.timestamp)
  const firstSeenAt = isoTime(event.firstSeenAt)
  const scores = scoresVisible(plan) ? { scores: event.scores } : {}
  add('identification.complete', () => identificationData(event, plan))
  if (event.verdict !== null) {
    const { verdict, linkedId, matchedRule, challengeType } = event
    add(`verdict.${verdict}`, () => ({
      ...head,
      linkedId,
      verdict,
      matchedRule,
      ...scores,
      ip: maskIp(event.ip.address),
      timestamp,
      ...(verdict === 'challenge' ? { challengeType } : {}),
    }))
  }
  for (const { deciding, ...rule } of event.matchedRules) {
    add('rule.matched', () => ({ ...head, rule, deciding, timestamp }), rule.id)
  }
  if (event.visitorFound) {
    const visitCount = event.visitor.totalVisits
    const previousVerdicts = context.previousVerdicts
    add('visitor.returning', () => ({ ...head, firstSeenAt, visitCount, previousVerdicts: previousVerdicts() }))
  } else {
    add('visitor.new', () => ({ ...head, firstSeenAt, ...placeData(event) }))
  }
  if (isBot) {
    const { botType: type, bot } = event.signals
    add('signal.bot.detected', () => ({ ...head, bot: { type, methods: bot.methods, confidence: bot.confidence } }))
  }
  return found
}

/** Of a visitor that is another from now on. */
export function mergeOccurrence({ workspace, env, visitorId, survivor, at, healedBy }: Aliasing): Matchable {
  const type = 'visitor.merged'
  const what = `${workspace}/${env}/${visitorId}/${survivor}/${at}/${type}`
  const data = {
    visitorId: survivor,
    mergedVisitorId: visitorId,
    by: healedBy === undefined ? 'people' : 'engine',
    requestId: healedBy?.requestId ?? null,
    confidence: healedBy?.confidence ?? null,
    timestamp: isoTime(at),
  }
  const occurrence: Occurrence = { eventId: `evt_${derivedUlid(at, what)}`, type, at, data, plainData: {} }
  return { occurrence, verdict: null, ruleId: null, botDetected: null }
}

function placeData({ device, ip }: StoredEvent) {
  const { platform, browser, gpu, type } = device
  return {
    device: {
      platform,
      browser,
      gpu,
      type,
      screenRes: device.screen === null ? null : `${device.screen.w}x${device.screen.h}`,
      language: device.language,
    },
    ip: maskIp(ip.address),
    geo: {
      city: ip.city,
      region: ip.region,
      country: ip.country,
      latitude: ip.lat,
      longitude: ip.lng,
      timezone: ip.timezone,
    },
  }
}

const networkData = ({ ip: { asn, asnName, datacenter, blocklisted, blocklists } }: StoredEvent) => ({
  asn,
  asnName,
  datacenter,
  blocklisted,
  blocklists,
})

const moreOfDevice = ({ device: { platform, osVersion, screen, model, appVersion, timezone } }: StoredEvent) => ({
  os: platform,
  osVersion,
  screen,
  model,
  appVersion,
  timezone,
})

function identificationData(event: StoredEvent, plan: Plan): Data {
  const s = event.signals
  const on = (
    name: 'bot' | 'vpn' | 'proxy' | 'tor' | 'incognito' | 'tampered' | 'emulator' | 'rootedDevice' | 'clonedApp',
  ) => s[name].state === 'detected'
  const { ip, geo, device } = placeData(event)
  return {
    requestId: event.requestId,
    visitorId: event.visitorId,
    visitorFound: event.visitorFound,
    confidence: event.confidence,
    firstSeenAt: isoTime(event.firstSeenAt),
    lastSeenAt: isoTime(event.lastSeenAt),
    visitCount: event.visitor.totalVisits,
    ip,
    geo: { ...geo, ...networkData(event) },
    device: { ...device, ...moreOfDevice(event) },
    signals: {
      bot: { detected: on('bot'), type: s.botType },
      proxy: { detected: on('proxy'), type: on('proxy') ? (event.ip.datacenter ? 'datacenter' : 'other') : null },
      vpn: { detected: on('vpn'), provider: s.vpnProvider },
      tor: on('tor'),
      incognito: on('incognito'),
      tampered: on('tampered'),
      emulator: on('emulator'),
      rootedDevice: on('rootedDevice'),
      clonedApp: on('clonedApp'),
    },
    ...(scoresVisible(plan) ? { scores: event.scores } : {}),
    verdict: event.verdict,
    matchedRules: event.matchedRules,
    ...restOf(event, plan),
  }
}

/** The members of the public event that have no name of their own above. */
function restOf(event: StoredEvent, plan: Plan): Data {
  const shown = presentEvent(event, plan)
  return Object.fromEntries(Object.entries(shown).filter(([name]) => !OWN_SHAPE.has(name)))
}

/** Members of the event that `identification.complete` has in a shape of its own. */
export const OWN_SHAPE: ReadonlySet<string> = new Set([
  ...[
    'requestId',
    'visitorId',
    'visitorFound',
    'confidence',
    'firstSeenAt',
    'lastSeenAt',
    'ip',
    'device',
    'signals',
    'scores',
  ],
  ...['verdict', 'matchedRules'],
])
