// An event as somebody gives it to try rules on: the public Event with as many members as they care about. Whatever is left out
// is missing for every condition, flags included.

import { invalid } from '../domain/errors.ts'
import {
  type Env,
  type Facts,
  quantise4,
  quantiseSuspect,
  SIGNAL_NAMES,
  type Signal,
  VELOCITY_NAMES,
} from '../domain/event.ts'
import { TAG_BYTES_MAX, TAG_DEPTH_MAX } from '../domain/identify.ts'
import { canonicalIp } from '../domain/ip.ts'
import { type Static, strict, Type } from '../domain/schema.ts'
import { nestsDeeper } from '../http/json-depth.ts'
import { parseDatetime } from '../lib/datetime.ts'
import { type Field, type FieldValue, field } from './fields.ts'

const maybe = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))
const text = (maxLength: number) => maybe(Type.String({ maxLength }))
const number = (minimum: number, maximum: number) => maybe(Type.Number({ minimum, maximum }))
const flag = maybe(Type.Boolean())
const signal = maybe(
  Type.Union([
    Type.Boolean(),
    Type.Object(
      { detected: Type.Optional(Type.Boolean()), type: text(64), provider: text(128), confidence: number(0, 1) },
      strict,
    ),
  ]),
)
const share = number(0, 1)
const count = number(0, Number.MAX_SAFE_INTEGER)
const day = maybe(Type.Object({ '24h': count }, strict))
const windows = maybe(Type.Object({ '5m': count, '1h': count, '24h': count }, strict))
const velocity = maybe(
  Type.Object(
    {
      visitor: maybe(Type.Object({ events: windows, ips: day, countries: day, linkedIds: day }, strict)),
      ip: maybe(Type.Object({ events: windows, visitors: day }, strict)),
      linkedId: maybe(Type.Object({ visitors: day, ips: day }, strict)),
    },
    strict,
  ),
)
/** Members of an Event that no condition reads. */
const ignored = Type.Optional(Type.Unknown())

export const GivenEvent = Type.Object(
  {
    requestId: text(64),
    visitorId: text(64),
    confidence: share,
    visitorFound: flag,
    possibleVisitorId: text(64),
    possibleConfidence: share,
    firstSeenAt: text(40),
    lastSeenAt: text(40),
    timestamp: text(40),
    device: maybe(
      Type.Object(
        {
          platform: text(64),
          os: text(64),
          osVersion: text(64),
          browser: text(128),
          browserVersion: text(64),
          gpu: text(512),
          type: text(32),
          model: text(256),
          appVersion: text(64),
          language: text(64),
          timezone: text(64),
          screen: maybe(Type.Object({ w: number(0, 65_535), h: number(0, 65_535) }, strict)),
        },
        strict,
      ),
    ),
    signals: maybe(Type.Object(Object.fromEntries(SIGNAL_NAMES.map((name) => [name, signal])), strict)),
    scores: maybe(Type.Object({ abuse: share, ato: share, bot: share, suspect: number(0, 100) }, strict)),
    ip: maybe(
      Type.Object(
        {
          address: text(64),
          city: text(256),
          region: text(256),
          country: text(64),
          timezone: text(64),
          lat: number(-90, 90),
          lng: number(-180, 180),
          asn: number(0, 4_294_967_295),
          asnName: text(256),
          datacenter: flag,
          blocklisted: flag,
          blocklists: maybe(Type.Array(Type.String({ maxLength: 128 }), { maxItems: 64 })),
        },
        strict,
      ),
    ),
    linkedId: text(256),
    email: text(320),
    tag: maybe(Type.Object({})),
    url: text(4_096),
    request: maybe(Type.Object({ keyKind: text(16) }, strict)),
    identity: maybe(Type.Object({ method: text(32), anonymitySet: count, candidates: count }, strict)),
    visitor: maybe(Type.Object({ totalVisits: count, linkedAccounts: count, ageSeconds: count }, strict)),
    signalDetails: ignored,
    scoreReasons: ignored,
    verdict: ignored,
    challengeType: ignored,
    label: ignored,
    matchedRule: ignored,
    matchedRules: ignored,
    monitorMatches: ignored,
    rulesRevision: ignored,
    evaluationError: ignored,
    velocity,
    storageToken: ignored,
    weightsVersion: ignored,
  },
  strict,
)
export type GivenEvent = Static<typeof GivenEvent>

type Plain = Readonly<Record<string, unknown>>
const isPlain = (value: unknown): value is Plain => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Reads fields as conditions see them; null: missing. Throws validation_error for what the schema cannot tell. */
export function readGiven(given: GivenEvent, workspace: string, env: Env, at = 'event'): (path: string) => FieldValue {
  const facts = factsOf(given, workspace, env, at)
  return (path) => {
    const found = field(path)
    if (found === null || !isGiven(given as Plain, found)) return null
    try {
      return found.read(facts)
    } catch {
      // A field that reads members which a given event cannot have.
      return null
    }
  }
}

/** Only flags and arrays would read as something when they are absent. */
function isGiven(given: Plain, { path, type }: Field): boolean {
  if (type !== 'boolean' && type !== 'strings') return true
  let value: unknown = given
  for (const name of path.split('.')) {
    if (typeof value === 'boolean' && name === 'detected') return true
    if (!isPlain(value) || !Object.hasOwn(value, name)) return false
    value = value[name]
  }
  if (isPlain(value)) return typeof value.detected === 'boolean'
  return value !== null && value !== undefined
}

function factsOf(given: GivenEvent, workspace: string, env: Env, at: string): Facts {
  const moment = (name: 'timestamp' | 'firstSeenAt' | 'lastSeenAt'): number => {
    const value = given[name]
    if (value === undefined || value === null) return Number.NaN
    const ms = parseDatetime(value)
    if (ms === null) throw invalid(`${at}.${name}`, 'Must be an RFC 3339 date and time with Z or an offset.')
    return ms
  }
  const tag = (given.tag ?? {}) as Plain
  if (Buffer.byteLength(JSON.stringify(tag)) > TAG_BYTES_MAX || nestsDeeper(tag, TAG_DEPTH_MAX)) {
    throw invalid(`${at}.tag`, `Must have at most ${TAG_BYTES_MAX} bytes and ${TAG_DEPTH_MAX} levels.`)
  }
  const { device, scores, ip, identity, visitor } = given
  const timestamp = moment('timestamp')
  const firstSeenAt = moment('firstSeenAt')
  const rounded = (x: number | null | undefined) => (typeof x === 'number' ? quantise4(x) : null)
  const facts = {
    workspace,
    env,
    requestId: given.requestId ?? '',
    visitorId: given.visitorId ?? '',
    visitorFound: given.visitorFound === true,
    confidence: rounded(given.confidence),
    possible:
      given.possibleVisitorId == null
        ? null
        : { visitorId: given.possibleVisitorId, confidence: rounded(given.possibleConfidence) },
    timestamp,
    firstSeenAt,
    lastSeenAt: moment('lastSeenAt'),
    device: { ...device, platform: device?.platform ?? device?.os ?? null, screen: screenOf(device?.screen) },
    signals: signalsOf((given.signals ?? {}) as Plain),
    scores: {
      abuse: rounded(scores?.abuse),
      ato: rounded(scores?.ato),
      bot: rounded(scores?.bot),
      suspect: typeof scores?.suspect === 'number' ? quantiseSuspect(scores.suspect) : null,
    },
    scoreReasons: [],
    ip: {
      ...ip,
      address: ip?.address ? (canonicalIp(ip.address) ?? ip.address) : null,
      lat: ip?.lat ?? null,
      lng: ip?.lng ?? null,
      blocklists: ip?.blocklists ?? [],
    },
    linkedId: given.linkedId ?? null,
    email: given.email?.trim().toLowerCase() ?? null,
    tag,
    url: given.url ?? null,
    keyKind: given.request?.keyKind ?? null,
    identity: identity ?? {},
    velocity: Object.fromEntries(VELOCITY_NAMES.map((name) => [name, memberAt(given.velocity, name)])),
    visitor: {
      totalVisits: visitor?.totalVisits ?? null,
      linkedAccounts: visitor?.linkedAccounts ?? null,
      ageSeconds: visitor?.ageSeconds ?? Math.max(0, Math.floor((timestamp - firstSeenAt) / 1000)),
    },
  }
  // Absent members are null or undefined here, which every reader takes for missing.
  return facts as unknown as Facts
}

const memberAt = (value: unknown, path: string): unknown =>
  path.split('.').reduce((at: unknown, name) => (isPlain(at) ? at[name] : null), value) ?? null

const screenOf = (screen: { w?: number | null; h?: number | null } | null | undefined) =>
  typeof screen?.w === 'number' && typeof screen.h === 'number' ? { w: screen.w, h: screen.h } : null

function signalsOf(given: Plain): Plain {
  const signals: Record<string, unknown> = { vpnProvider: null, botType: null }
  for (const name of SIGNAL_NAMES) {
    const value = given[name]
    const detected = isPlain(value) ? value.detected === true : value === true
    const state: Signal['state'] = detected ? 'detected' : 'clear'
    signals[name] = { state, confidence: 0, methods: [], source: 'client', dataAgeSeconds: null } satisfies Signal
    if (name === 'vpn' && isPlain(value)) signals.vpnProvider = value.provider ?? null
    if (name === 'bot' && isPlain(value)) signals.botType = value.type ?? null
  }
  return signals
}
