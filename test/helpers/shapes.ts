// What the contract says answers look like, to the last member: each checker lists every way in which a value differs.

/** Faults of a value, each with its path; an empty list means it has the shape. */
export type Shape = (value: unknown, path?: string) => string[]

const show = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 120)
const check =
  (what: string, holds: (value: unknown) => boolean): Shape =>
  (value, path = '$') =>
    holds(value) ? [] : [`${path} must be ${what}, is ${show(value)}`]

export const bool = check('a boolean', (v) => typeof v === 'boolean')
export const text = check('a text', (v) => typeof v === 'string' && v !== '')
const anyText = check('a text', (v) => typeof v === 'string')
export const matching = (pattern: RegExp) => check(String(pattern), (v) => typeof v === 'string' && pattern.test(v))
export const oneOf = (...values: readonly unknown[]) => check(values.map(show).join(' | '), (v) => values.includes(v))
export const integer = (min = 0) => check(`an integer ≥ ${min}`, (v) => Number.isInteger(v) && (v as number) >= min)
/** A number in a range with at most so many decimals. */
export const number = (min: number, max: number, decimals: number) =>
  check(
    `a number from ${min} to ${max} with ${decimals} decimals`,
    (v) => typeof v === 'number' && v >= min && v <= max && v === Math.round(v * 10 ** decimals) / 10 ** decimals,
  )
export const orNull =
  (shape: Shape): Shape =>
  (value, path) =>
    value === null ? [] : shape(value, path)

export const listOf =
  (shape: Shape): Shape =>
  (value, path = '$') =>
    Array.isArray(value) ? value.flatMap((item, i) => shape(item, `${path}[${i}]`)) : [`${path} must be a list`]

/** An object with exactly these members; `optional` ones may be absent. */
export const object =
  (members: Readonly<Record<string, Shape>>, optional: Readonly<Record<string, Shape>> = {}): Shape =>
  (value, path = '$') => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} must be an object`]
    const given = value as Record<string, unknown>
    const faults: string[] = []
    for (const name of Object.keys(given)) {
      if (!Object.hasOwn(members, name) && !Object.hasOwn(optional, name)) faults.push(`${path}.${name} is not known`)
    }
    for (const [name, shape] of Object.entries(members)) {
      faults.push(
        ...(Object.hasOwn(given, name) ? shape(given[name], `${path}.${name}`) : [`${path}.${name} is missing`]),
      )
    }
    for (const [name, shape] of Object.entries(optional)) {
      if (Object.hasOwn(given, name)) faults.push(...shape(given[name], `${path}.${name}`))
    }
    return faults
  }

const anyObject = check('an object', (v) => typeof v === 'object' && v !== null && !Array.isArray(v))

export const REQUEST_ID = /^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/
export const VISITOR_ID = /^pv_[0-9A-Za-z]{20}$/
export const STORAGE_TOKEN = /^st_[0-9A-Za-z_-]{64}$/
export const CALL_ID = /^call_[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const RULE_ID = /^rul_[0-9A-Za-z]{20}$/
export const moment = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
export const maskedIp = matching(/^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\*|[0-9a-f:]+::\*)$/)
export const maskedEmail = matching(/^[^@]{0,2}\*\*\*@[^@]+$/u)
export const verdict = oneOf('allow', 'challenge', 'block', null)
const challenge = oneOf('captcha', 'otp', 'email', 'webauthn', 'device_check', 'custom', null)
const unit = number(0, 1, 4)

const match = object({ id: matching(RULE_ID), name: text, priority: integer(-1e9), verdict, deciding: bool })
const signalDetail = {
  state: oneOf('detected', 'undetermined'),
  confidence: unit,
  methods: listOf(text),
  source: oneOf('client', 'server', 'native', 'mock'),
  dataAgeSeconds: orNull(integer()),
}
const detail = object(signalDetail)
const windows = (...names: string[]) => object(Object.fromEntries(names.map((name) => [name, integer()])))
const velocity = object({
  visitor: object({
    events: windows('5m', '1h', '24h'),
    ips: windows('24h'),
    countries: windows('24h'),
    linkedIds: windows('24h'),
  }),
  ip: object({ events: windows('5m', '1h', '24h'), visitors: windows('24h') }),
  linkedId: object({ visitors: object({ '24h': orNull(integer()) }), ips: object({ '24h': orNull(integer()) }) }),
})

const SCORES = {
  scores: object({ abuse: unit, ato: unit, bot: unit, suspect: number(0, 100, 2) }),
  scoreReasons: listOf(
    object({ score: oneOf('abuse', 'ato', 'bot', 'suspect'), reason: text, weight: number(-100, 100, 6) }),
  ),
}

const EVENT: Readonly<Record<string, Shape>> = {
  requestId: matching(REQUEST_ID),
  visitorId: matching(VISITOR_ID),
  confidence: unit,
  visitorFound: bool,
  firstSeenAt: moment,
  lastSeenAt: moment,
  timestamp: moment,
  device: object({
    platform: oneOf('Windows', 'macOS', 'Linux', 'ChromeOS', 'iOS', 'Android', 'other'),
    os: text,
    osVersion: orNull(text),
    browser: text,
    gpu: orNull(text),
    type: oneOf('desktop', 'mobile', 'tablet', 'other'),
    screen: orNull(object({ w: integer(1), h: integer(1) })),
    model: orNull(text),
    appVersion: orNull(text),
    language: orNull(text),
    timezone: orNull(text),
  }),
  signals: object({
    bot: object({ detected: bool }),
    vpn: object({ detected: bool, provider: orNull(text) }),
    incognito: bool,
    tampered: bool,
    emulator: bool,
    proxy: bool,
    tor: bool,
    rootedDevice: bool,
    clonedApp: bool,
  }),
  signalDetails: object(
    {},
    {
      bot: object(signalDetail, { type: text }),
      vpn: detail,
      incognito: detail,
      tampered: detail,
      emulator: detail,
      proxy: detail,
      tor: detail,
      rootedDevice: detail,
      clonedApp: detail,
    },
  ),
  ip: object({
    address: maskedIp,
    city: orNull(text),
    region: orNull(text),
    country: orNull(matching(/^[A-Z]{2}$/)),
    lat: orNull(number(-90, 90, 4)),
    lng: orNull(number(-180, 180, 4)),
    timezone: orNull(text),
    asn: orNull(integer(1)),
    asnName: orNull(text),
    datacenter: bool,
    blocklisted: bool,
    blocklists: listOf(text),
  }),
  verdict,
  challengeType: challenge,
  matchedRule: orNull(object({ id: matching(RULE_ID), name: text, priority: integer(-1e9) })),
  matchedRules: listOf(match),
  monitorMatches: listOf(match),
  rulesRevision: integer(),
  weightsVersion: orNull(integer(1)),
  request: object({ keyKind: oneOf('public', 'secret', null) }),
  linkedId: orNull(text),
  email: orNull(maskedEmail),
  tag: anyObject,
  url: orNull(text),
  possibleVisitorId: orNull(matching(VISITOR_ID)),
  possibleConfidence: orNull(unit),
  identity: object({
    method: oneOf('token', 'exact', 'linked', 'new'),
    anonymitySet: integer(),
    candidates: integer(),
  }),
  label: oneOf('fraud', 'legitimate', null),
}
const EVENT_OPTIONAL = { velocity, evaluationError: text }

/** The Event as GET /v1/events/{requestId} gives it on a plan with scores. */
export const event = object({ ...EVENT, ...SCORES }, EVENT_OPTIONAL)
/** The same below Pro. */
export const eventWithoutScores = object(EVENT, EVENT_OPTIONAL)
/** What identify answers to a secret key. */
export const secretResult = object({ ...EVENT, ...SCORES, storageToken: matching(STORAGE_TOKEN) }, EVENT_OPTIONAL)
export const secretResultWithoutScores = object({ ...EVENT, storageToken: matching(STORAGE_TOKEN) }, EVENT_OPTIONAL)

const PUBLIC: Readonly<Record<string, Shape>> = {
  requestId: matching(REQUEST_ID),
  visitorId: matching(VISITOR_ID),
  visitorFound: bool,
  confidence: unit,
  firstSeenAt: moment,
  lastSeenAt: moment,
  timestamp: moment,
  storageToken: matching(STORAGE_TOKEN),
}
/** What identify answers to a public key, by the workspace's `clientResult`. */
export const publicResult = object(PUBLIC)
export const publicResultWithVerdict = object({ ...PUBLIC, verdict, challengeType: challenge })

export const pending = object({ requestId: matching(REQUEST_ID), status: oneOf('pending') })

export const eventSummary = object({
  requestId: matching(REQUEST_ID),
  visitorId: matching(VISITOR_ID),
  confidence: unit,
  verdict,
  timestamp: moment,
})
export const visitorEvent = object({
  requestId: matching(REQUEST_ID),
  timestamp: moment,
  verdict,
  signals: object({ bot: bool, vpn: bool }),
})
export const page = (item: Shape): Shape => object({ data: listOf(item), hasMore: bool, nextCursor: orNull(text) })

export const visitor = object({
  visitorId: matching(VISITOR_ID),
  firstSeenAt: moment,
  lastSeenAt: moment,
  totalVisits: integer(1),
  devices: listOf(object({ platform: text, browser: text, gpu: orNull(text) })),
  ips: listOf(maskedIp),
  linkedAccounts: integer(),
  lists: listOf(text),
  previousVerdicts: object({ allow: integer(), challenge: integer(), block: integer() }),
})

const STATUS_OF: Readonly<Record<string, number>> = {
  validation_error: 400,
  invalid_json: 400,
  idempotency_key_mismatch: 400,
  invalid_api_key: 401,
  insufficient_permissions: 403,
  origin_not_allowed: 403,
  plan_required: 403,
  not_found: 404,
  route_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  idempotency_conflict: 409,
  resource_limit_reached: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  headers_too_large: 431,
  rate_limited: 429,
  idempotency_in_progress: 409,
  internal_error: 500,
  unavailable: 503,
}
const errorBody = object({
  error: object({ code: text, message: text }, { docs: text, field: anyText, retryAfter: integer(1) }),
})

/** The error body of the contract, with the code that belongs to the status. */
export function errorFaults(status: number, body: unknown): string[] {
  const faults = errorBody(body)
  if (faults.length > 0) return faults
  const { code, field } = (body as { error: { code: string; field?: string } }).error
  if (STATUS_OF[code] !== status) faults.push(`$.error.code ${code} does not belong to ${status}`)
  if (code === 'validation_error' && field === undefined) faults.push('$.error.field is missing')
  return faults
}
