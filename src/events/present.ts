// What the outside sees of an event: the contract's Event with its additions (src/docs/contract.md, Events), masked, plan-aware.

import type { Signal, StoredEvent, Velocity } from '../domain/event.ts'
import { SIGNAL_NAMES, VELOCITY_NAMES } from '../domain/event.ts'
import { maskIp } from '../domain/ip.ts'
import type { Plan } from '../domain/workspace.ts'

/** Seconds whose text is remembered, each in the place of its last bits: moments of one time lie close together. */
const SECONDS_KEPT = 256
const secondsKept = new Float64Array(SECONDS_KEPT).fill(Number.NaN)
const secondTexts = new Array<string>(SECONDS_KEPT).fill('')
/** What stands behind the second. */
const ENDS = Array.from({ length: 1_000 }, (_, ms) => `.${String(ms).padStart(3, '0')}Z`)

/** As `Date` writes it, which takes several times as long: an event tells two or three moments. */
export function isoTime(ms: number): string {
  const second = Math.floor(ms / 1_000)
  const end = ENDS[ms - second * 1_000]
  // A fraction of a millisecond, or no moment at all.
  if (end === undefined) return new Date(ms).toISOString()
  const place = second & (SECONDS_KEPT - 1)
  if (secondsKept[place] !== second) {
    secondTexts[place] = new Date(second * 1_000).toISOString().slice(0, -'.000Z'.length)
    secondsKept[place] = second
  }
  return secondTexts[place] + end
}

/** `a***@b.example` */
export function maskEmail(email: string): string {
  const at = email.lastIndexOf('@')
  const first = String.fromCodePoint(email.codePointAt(0) ?? 42)
  return `${first}***${email.slice(at)}`
}

export const scoresVisible = (plan: Plan): boolean => plan !== 'starter'

export function presentSignals(event: StoredEvent) {
  const on = (signal: Signal) => signal.state === 'detected'
  const s = event.signals
  return {
    bot: { detected: on(s.bot) },
    vpn: { detected: on(s.vpn), provider: s.vpnProvider },
    incognito: on(s.incognito),
    tampered: on(s.tampered),
    emulator: on(s.emulator),
    proxy: on(s.proxy),
    tor: on(s.tor),
    rootedDevice: on(s.rootedDevice),
    clonedApp: on(s.clonedApp),
  }
}

/** Only what was raised or could not be told: the rest is clear. */
function presentDetails(event: StoredEvent) {
  const details: Record<string, unknown> = {}
  for (const name of SIGNAL_NAMES) {
    const signal = event.signals[name]
    if (signal.state === 'clear') continue
    details[name] =
      name === 'bot' && event.signals.botType !== null ? { ...signal, type: event.signals.botType } : signal
  }
  return details
}

/** `visitor.events.5m` is the member `5m` of `events` of `visitor`. */
function presentVelocity(velocity: Velocity) {
  const nested: Record<string, Record<string, Record<string, number | null>>> = {}
  for (const name of VELOCITY_NAMES) {
    const [whose, what, window] = name.split('.') as [string, string, string]
    nested[whose] ??= {}
    const counters = nested[whose]
    counters[what] ??= {}
    counters[what][window] = velocity[name]
  }
  return nested
}

/** `isMasked`: addresses and emails only as far as everybody may see them. */
export function presentEvent(event: StoredEvent, plan: Plan, isMasked = true): Record<string, unknown> {
  const { device, ip } = event
  return {
    requestId: event.requestId,
    visitorId: event.visitorId,
    confidence: event.confidence,
    visitorFound: event.visitorFound,
    possibleVisitorId: event.possible?.visitorId ?? null,
    possibleConfidence: event.possible?.confidence ?? null,
    firstSeenAt: isoTime(event.firstSeenAt),
    lastSeenAt: isoTime(event.lastSeenAt),
    timestamp: isoTime(event.timestamp),
    device: {
      platform: device.platform,
      os: device.platform,
      osVersion: device.osVersion,
      browser: device.browser,
      gpu: device.gpu,
      type: device.type,
      screen: device.screen,
      model: device.model,
      appVersion: device.appVersion,
      language: device.language,
      timezone: device.timezone,
    },
    signals: presentSignals(event),
    signalDetails: presentDetails(event),
    ...(scoresVisible(plan) ? { scores: event.scores, scoreReasons: event.scoreReasons } : {}),
    ip: {
      address: isMasked ? maskIp(ip.address) : ip.address,
      city: ip.city,
      region: ip.region,
      country: ip.country,
      lat: ip.lat,
      lng: ip.lng,
      timezone: ip.timezone,
      asn: ip.asn,
      asnName: ip.asnName,
      datacenter: ip.datacenter,
      blocklisted: ip.blocklisted,
      blocklists: ip.blocklists,
    },
    verdict: event.verdict,
    challengeType: event.challengeType,
    matchedRule: event.matchedRule,
    matchedRules: event.matchedRules,
    monitorMatches: event.monitorMatches,
    rulesRevision: event.rulesRevision,
    weightsVersion: event.weightsVersion,
    request: { keyKind: event.keyKind },
    linkedId: event.linkedId,
    email: event.email === null || !isMasked ? event.email : maskEmail(event.email),
    tag: event.tag,
    url: event.url,
    identity: {
      method: event.identity.method,
      anonymitySet: event.identity.anonymitySet,
      candidates: event.identity.candidates,
    },
    ...(event.velocity === null ? {} : { velocity: presentVelocity(event.velocity) }),
    label: event.label,
    ...(event.evaluationError === null ? {} : { evaluationError: event.evaluationError }),
  }
}
