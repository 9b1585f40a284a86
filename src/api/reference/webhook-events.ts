// What webhooks are told: the envelope, and the data of every type of event with an example.

import { ID_MEMBERS } from '../../dispatcher/envelope.ts'
import { OWN_SHAPE } from '../../dispatcher/occurrences.ts'
import { SIGNALS_OFF } from '../../dispatcher/samples.ts'
import { CHALLENGE_TYPES, VERDICTS } from '../../domain/event.ts'
import { ENTRY_SOURCES } from '../../domain/list.ts'
import { oneOf, type TObject, type TSchema, Type } from '../../domain/schema.ts'
import { PAYLOAD_BYTES_MAX } from '../../domain/webhook.ts'
import { API_VERSIONS } from '../../domain/workspace.ts'
import { count, flag, listId, moment, orNull, requestId, ruleId, share, shared, visitorId, words } from '../describe.ts'
import { EVENT_EXAMPLE } from '../events/examples.ts'
import { Event, RuleMatch, Scores, verdict } from '../events/schema.ts'
import { MERGED } from './webhook-merged.ts'

export interface WebhookEvent {
  readonly type: string
  /** A: `identification`, `rule_match`, `list_update`. B: dotted names. */
  readonly shape: 'A' | 'B'
  readonly description: string
  /** Of the whole body. */
  readonly schema: TSchema
  readonly example: unknown
}

const head = { requestId: requestId(), visitorId: visitorId() }
const device = {
  platform: words(),
  browser: words(),
  gpu: orNull(words()),
  type: words(),
  screenRes: orNull(words('Width and height: `2560x1440`.')),
  language: orNull(words()),
}
const geo = shared(
  'Geo',
  Type.Object({
    city: orNull(words()),
    region: orNull(words()),
    country: orNull(words()),
    latitude: orNull(Type.Number()),
    longitude: orNull(Type.Number()),
    timezone: orNull(words()),
  }),
)
/** What `identification.complete` has besides: members of the event, of its address and of its device. */
const REST = Object.keys(Event.properties).filter((name) => !OWN_SHAPE.has(name))
const NETWORK = ['asn', 'asnName', 'datacenter', 'blocklisted', 'blocklists']
const MORE_OF_DEVICE = ['os', 'osVersion', 'screen', 'model', 'appVersion', 'timezone']
const only = <T extends object>(of: T, names: readonly string[]): Partial<T> =>
  Object.fromEntries(Object.entries(of).filter(([name]) => names.includes(name))) as Partial<T>
const kindOf = Type.Object({ detected: flag(), type: orNull(words()) })
const matchedRule = orNull(Type.Object({ id: ruleId(), name: words(), priority: Type.Integer() }))
const decided = {
  ...head,
  linkedId: orNull(words()),
  verdict: oneOf(VERDICTS),
  matchedRule,
  scores: Type.Optional(Scores),
  ip: words('Masked.'),
  timestamp: moment(),
}

const { requestId: exampleId, visitorId: exampleVisitor, timestamp, firstSeenAt, lastSeenAt, scores } = EVENT_EXAMPLE
const who = { requestId: exampleId, visitorId: exampleVisitor }
const [match] = EVENT_EXAMPLE.matchedRules
const { deciding, ...matched } = match as (typeof EVENT_EXAMPLE.matchedRules)[number]
const { ip, device: seen } = EVENT_EXAMPLE
const place = {
  ip: ip.address,
  geo: {
    city: ip.city,
    region: ip.region,
    country: ip.country,
    latitude: ip.lat,
    longitude: ip.lng,
    timezone: ip.timezone,
  },
  device: {
    platform: seen.platform,
    browser: seen.browser,
    gpu: seen.gpu,
    type: seen.type,
    screenRes: '2560x1440',
    language: seen.language,
  },
}
const decision = {
  ...who,
  linkedId: 'user_42',
  matchedRule: EVENT_EXAMPLE.matchedRule,
  scores,
  ip: ip.address,
  timestamp,
}
const entry = { listId: 'lst_9aQw3eRt5yUi7oPl1kJh', listName: 'trusted_devices', value: exampleVisitor }

interface Told {
  readonly description: string
  readonly data: TObject
  readonly example: object
}

/** By type; a type that is added here is in the document. */
const TOLD: Readonly<Record<string, Told>> = {
  'identification.complete': {
    description: 'A visitor is identified: the full result.',
    data: Type.Object({
      ...head,
      visitorFound: flag(),
      confidence: share(),
      firstSeenAt: moment(),
      lastSeenAt: moment(),
      visitCount: count(),
      ip: words('Masked.'),
      geo: Type.Object({ ...geo.properties, ...only(Event.properties.ip.properties, NETWORK) }),
      device: Type.Object({ ...device, ...only(Event.properties.device.properties, MORE_OF_DEVICE) }),
      signals: Type.Object({
        bot: kindOf,
        proxy: kindOf,
        vpn: Type.Object({ detected: flag(), provider: orNull(words()) }),
        tor: flag(),
        incognito: flag(),
        tampered: flag(),
        emulator: flag(),
        rootedDevice: flag(),
        clonedApp: flag(),
      }),
      scores: Type.Optional(Scores),
      verdict,
      matchedRules: Type.Array(RuleMatch),
      ...only(Event.properties, REST),
    }),
    example: {
      ...who,
      visitorFound: true,
      confidence: EVENT_EXAMPLE.confidence,
      firstSeenAt,
      lastSeenAt,
      visitCount: 17,
      ...place,
      geo: { ...place.geo, ...only(ip, NETWORK) },
      device: { ...place.device, ...only(seen, MORE_OF_DEVICE) },
      signals: {
        bot: { detected: false, type: null },
        proxy: { detected: false, type: null },
        vpn: EVENT_EXAMPLE.signals.vpn,
        ...SIGNALS_OFF,
      },
      scores,
      verdict: 'challenge',
      matchedRules: EVENT_EXAMPLE.matchedRules,
      ...only(EVENT_EXAMPLE, REST),
    },
  },
  'verdict.allow': {
    description: 'The rules allow the visitor.',
    data: Type.Object(decided),
    example: { ...decision, verdict: 'allow', matchedRule: null },
  },
  'verdict.block': {
    description: 'The rules block the visitor.',
    data: Type.Object(decided),
    example: { ...decision, verdict: 'block' },
  },
  'verdict.challenge': {
    description: 'The rules challenge the visitor, with the challenge they recommend.',
    data: Type.Object({ ...decided, challengeType: oneOf(CHALLENGE_TYPES) }),
    example: { ...decision, verdict: 'challenge', challengeType: 'otp' },
  },
  'rule.matched': {
    description: 'A live rule matches, whatever its verdict: one event per rule.',
    data: Type.Object({
      ...head,
      rule: Type.Object({ id: ruleId(), name: words(), priority: Type.Integer(), verdict: oneOf(VERDICTS) }),
      deciding: flag('Whether it gave the verdict.'),
      timestamp: moment(),
    }),
    example: { ...who, rule: matched, deciding, timestamp },
  },
  'visitor.new': {
    description: 'A visitor is seen for the first time.',
    data: Type.Object({ ...head, firstSeenAt: moment(), device: Type.Object(device), ip: words(), geo }),
    example: { ...who, firstSeenAt: timestamp, ...place },
  },
  'visitor.returning': {
    description: 'A known visitor comes back.',
    data: Type.Object({
      ...head,
      firstSeenAt: moment(),
      visitCount: count(),
      previousVerdicts: Type.Object({ allow: count(), challenge: count(), block: count() }),
    }),
    example: { ...who, firstSeenAt, visitCount: 17, previousVerdicts: { allow: 15, challenge: 1, block: 0 } },
  },
  'visitor.merged': MERGED,
  'signal.bot.detected': {
    description: 'The bot signal is raised.',
    data: Type.Object({
      ...head,
      bot: Type.Object({ type: orNull(words()), methods: Type.Array(words()), confidence: share() }),
    }),
    example: { ...who, bot: { type: 'headless', methods: ['webdriver'], confidence: 0.97 } },
  },
  'list.entry.added': {
    description: 'An entry is put on a list, by a call, a file or a rule.',
    data: Type.Object({
      listId: listId(),
      listName: words(),
      value: words(),
      expiresAt: orNull(moment()),
      source: oneOf(ENTRY_SOURCES),
      ruleId: orNull(ruleId()),
      requestId: orNull(requestId()),
    }),
    example: { ...entry, expiresAt: null, source: 'api', ruleId: null, requestId: null },
  },
  'list.entry.expired': {
    description: 'The time of an entry is over.',
    data: Type.Object({
      listId: listId(),
      listName: words(),
      value: words(),
      addedAt: moment(),
      ttl: count('Seconds it was given when it was last added.'),
    }),
    example: { ...entry, addedAt: '2026-11-20T17:04:05.123Z', ttl: 3_600 },
  },
  'alert.triggered': {
    description: 'The threshold of an alert is exceeded.',
    data: Type.Object({
      alert: Type.Unsafe<Record<string, unknown>>({ type: 'object', description: 'The alert as it is defined.' }),
      value: Type.Number({ description: 'What was measured.' }),
      windowStart: moment(),
      windowEnd: moment(),
    }),
    example: {
      alert: { id: 'alr_1qAz3wSx5eDc7rFv9tGb', name: 'Blocks', metric: 'block_rate', operator: 'gt', threshold: 0.2 },
      value: 0.31,
      windowStart: '2026-11-20T18:00:00.000Z',
      windowEnd: '2026-11-20T18:05:00.000Z',
    },
  },
}

const ULID = '01KAJ6Q3ZV8M4T9XW2C5E7G1HP'
/** What is left of a body that would be too long: what it is about can be read by its ids. */
function orShrunk(data: TObject): TSchema {
  const kept = Object.entries(data.properties).filter(([name]) => ID_MEMBERS.includes(name))
  const truncated = Type.Literal(true, {
    description: `Only where the body would be longer than ${PAYLOAD_BYTES_MAX.toLocaleString('en')} bytes: the rest is left out.`,
  })
  return Type.Union([data, Type.Object({ ...Object.fromEntries(kept), truncated })])
}

const envelope = (type: string, data: TObject) =>
  Type.Object({
    webhookId: words('The subscription.'),
    eventId: words('Unique; the same in every delivery of this occurrence.'),
    eventType: Type.Literal(type),
    apiVersion: words('The version the payload is formatted for.'),
    createdAt: moment(),
    idempotencyKey: words('The same in every delivery of this occurrence: drop what you have seen.'),
    data: orShrunk(data),
  })

const PLAIN: Readonly<Record<string, readonly [description: string, data: TObject, example: object]>> = {
  identification: ['A visitor is identified.', plainData(), plainExample()],
  rule_match: ['A live rule matches.', plainData(), plainExample()],
  list_update: [
    'An entry is put on a list, or its time is over.',
    Type.Object({
      requestId: Type.Null(),
      visitorId: Type.Null(),
      verdict: Type.Null(),
      signals: Type.Null(),
      list: Type.Object({ id: listId(), name: words() }),
      entry: words(),
      change: oneOf(['added', 'expired']),
    }),
    {
      requestId: null,
      visitorId: null,
      verdict: null,
      signals: null,
      list: { id: entry.listId, name: entry.listName },
      entry: entry.value,
      change: 'added',
    },
  ],
}

function plainData(): TObject {
  return Type.Object({ ...head, verdict, signals: Type.Unsafe<Record<string, unknown>>({ type: 'object' }) })
}
function plainExample() {
  return { ...who, verdict: 'challenge', signals: EVENT_EXAMPLE.signals }
}

export const WEBHOOK_EVENTS: readonly WebhookEvent[] = [
  ...Object.entries(TOLD).map(([type, { description, data, example }]) => ({
    type,
    shape: 'B' as const,
    description,
    schema: envelope(type, data),
    example: {
      webhookId: 'wh_8uJm0kIo2lPq4aSd6fGh',
      eventId: `evt_${ULID}`,
      eventType: type,
      apiVersion: API_VERSIONS[0],
      createdAt: timestamp,
      idempotencyKey: `ik_${ULID}`,
      data: example,
    },
  })),
  ...Object.entries(PLAIN).map(([type, [description, data, example]]) => ({
    type,
    shape: 'A' as const,
    description,
    schema: Type.Object({ event: Type.Literal(type), timestamp: moment(), data: orShrunk(data) }),
    example: { event: type, timestamp, data: example },
  })),
]
