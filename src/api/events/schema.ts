// What the API shows of events: the event itself, its summaries, why it has its visitor, and the answers of identify.

import { CHALLENGE_TYPES, SIGNAL_NAMES, VERDICTS } from '../../domain/event.ts'
import { oneOf, Type } from '../../domain/schema.ts'
import { VALUE_NAMES } from '../../identity/profile.ts'
import { count, flag, moment, orNull, requestId, ruleId, share, shared, visitorId, words } from '../describe.ts'

export const verdict = orNull(oneOf(VERDICTS))
const challengeType = orNull(oneOf(CHALLENGE_TYPES))
const AGREEMENTS = ['agrees', 'alternates', 'differs', 'unknown'] as const
const agreement = oneOf(AGREEMENTS)
const agreements = Object.fromEntries(VALUE_NAMES.map((name) => [name, agreement])) as Record<
  (typeof VALUE_NAMES)[number],
  typeof agreement
>
export const LABELS = ['fraud', 'legitimate'] as const
export type Label = (typeof LABELS)[number] | null
export const SOURCES = ['client', 'server', 'native', 'mock'] as const

const Match = shared(
  'RuleMatch',
  Type.Object({
    id: ruleId(),
    name: words(),
    priority: Type.Integer(),
    verdict: oneOf(VERDICTS),
    deciding: flag('Whether this match gave the verdict.'),
  }),
)
export const RuleMatch = Match

const detail = {
  state: oneOf(['detected', 'undetermined']),
  confidence: share(),
  methods: Type.Array(words(), { description: 'The checks that raised it, as stable codes.' }),
  source: oneOf(SOURCES),
  dataAgeSeconds: orNull(count('Age of the IP data it rests on.')),
}
const SignalDetail = shared('SignalDetail', Type.Object(detail))
const BotDetail = Type.Object({ ...detail, type: Type.Optional(words('Kind of bot.')) })
const { bot: _bot, ...otherDetails } = Object.fromEntries(
  SIGNAL_NAMES.map((name) => [name, Type.Optional(SignalDetail)]),
)

const day = Type.Object({ '24h': orNull(count()) })
const windows = Type.Object({ '5m': count(), '1h': count(), '24h': count() })
const Velocity = shared(
  'Velocity',
  Type.Object(
    {
      visitor: Type.Object({ events: windows, ips: day, countries: day, linkedIds: day }),
      ip: Type.Object({ events: windows, visitors: day }),
      linkedId: Type.Object({ visitors: day, ips: day }),
    },
    { description: 'How often and how varied, this event included.' },
  ),
)

const signals = Type.Object({
  bot: Type.Object({ detected: flag() }),
  vpn: Type.Object({ detected: flag(), provider: orNull(words()) }),
  incognito: flag(),
  tampered: flag(),
  emulator: flag(),
  proxy: flag(),
  tor: flag(),
  rootedDevice: flag(),
  clonedApp: flag(),
})

const ip = Type.Object({
  address: words('Masked: the last part of an IPv4 address, all but the first 48 bits of an IPv6 address.'),
  city: orNull(words()),
  region: orNull(words()),
  country: orNull(words('ISO 3166-1, two letters.')),
  lat: orNull(Type.Number()),
  lng: orNull(Type.Number()),
  timezone: orNull(words()),
  asn: orNull(Type.Integer()),
  asnName: orNull(words()),
  datacenter: flag(),
  blocklisted: flag(),
  blocklists: Type.Array(words()),
})

export const Scores = shared(
  'Scores',
  Type.Object(
    { abuse: share(), ato: share(), bot: share(), suspect: Type.Number({ minimum: 0, maximum: 100 }) },
    { description: 'Plan Pro and above.' },
  ),
)

const eventMembers = {
  requestId: requestId('Unique id of the event.'),
  visitorId: visitorId('The device.'),
  confidence: share('How certain the recognition is; above 0.9 is high.'),
  visitorFound: flag('Whether this visitor was seen before.'),
  possibleVisitorId: orNull(
    visitorId(
      'Of a new visitor: the known one it is likeliest to be, though that is not sure enough for `visitorId`. For those who would rather be told too often; nothing is counted or listed under it. null: nobody comes into question.',
    ),
  ),
  possibleConfidence: orNull(share('How likely it is that visitor: from 0.1 to below what `visitorId` asks for.')),
  firstSeenAt: moment(),
  lastSeenAt: moment(),
  timestamp: moment('Time of the event.'),
  device: Type.Object({
    platform: oneOf(['Windows', 'macOS', 'Linux', 'ChromeOS', 'iOS', 'Android', 'other']),
    os: words(),
    osVersion: orNull(words()),
    browser: words('Family and major version.'),
    gpu: orNull(words()),
    type: oneOf(['desktop', 'mobile', 'tablet', 'other']),
    screen: orNull(Type.Object({ w: count(), h: count() })),
    model: orNull(words()),
    appVersion: orNull(words()),
    language: orNull(words()),
    timezone: orNull(words()),
  }),
  signals,
  signalDetails: Type.Object(
    { bot: Type.Optional(BotDetail), ...otherDetails },
    { description: 'Of signals that were raised or could not be told.' },
  ),
  scores: Type.Optional(Scores),
  scoreReasons: Type.Optional(
    Type.Array(
      Type.Object({
        score: oneOf(['abuse', 'ato', 'bot', 'suspect']),
        reason: words(),
        weight: Type.Number(),
      }),
    ),
  ),
  ip,
  verdict,
  challengeType,
  matchedRule: orNull(Type.Object({ id: ruleId(), name: words(), priority: Type.Integer() })),
  matchedRules: Type.Array(Match, { description: 'Every live rule that matched.' }),
  monitorMatches: Type.Array(Match, { description: 'Every monitored rule that matched.' }),
  rulesRevision: count('The revision of the rules that decided.'),
  weightsVersion: orNull(
    count('The version of the weights behind signals and scores; null for events from before it was kept.'),
  ),
  request: Type.Object({
    keyKind: orNull(
      Type.Unsafe<'public' | 'secret'>({
        ...oneOf(['public', 'secret']),
        description:
          'Who sent it. Of a public key `linkedId`, `email` and `tag` are what a page claims, of a secret key what your server knows.',
      }),
    ),
  }),
  linkedId: orNull(words("The customer's account id.")),
  email: orNull(words('Masked.')),
  tag: Type.Unsafe<Record<string, unknown>>({ type: 'object', description: 'As it was sent.' }),
  url: orNull(words()),
  identity: Type.Object({
    method: oneOf(['token', 'exact', 'linked', 'new']),
    anonymitySet: count('How many known visitors look alike enough to be confused with this one.'),
    candidates: count('How many known visitors were compared.'),
  }),
  velocity: Type.Optional(Velocity),
  label: orNull(oneOf(LABELS)),
  evaluationError: Type.Optional(words('Why the event could not be decided.')),
}
const storageToken = Type.String({
  pattern: '^st_[0-9A-Za-z_-]{64}$',
  description: 'For first-party storage; send it with the next call.',
})

export const Event = shared('Event', Type.Object(eventMembers))
export const IdentifiedEvent = shared('IdentifiedEvent', Type.Object({ ...eventMembers, storageToken }))
export const Identified = shared(
  'Identified',
  Type.Object({
    requestId: requestId(),
    visitorId: visitorId(),
    visitorFound: flag(),
    confidence: share(),
    firstSeenAt: moment(),
    lastSeenAt: moment(),
    timestamp: moment(),
    storageToken,
    verdict: Type.Optional(verdict),
    challengeType: Type.Optional(challengeType),
  }),
)
export const Pending = shared('Pending', Type.Object({ requestId: requestId(), status: Type.Literal('pending') }))

export const EventSummary = shared(
  'EventSummary',
  Type.Object({ requestId: requestId(), visitorId: visitorId(), confidence: share(), verdict, timestamp: moment() }),
)
export const Labelling = shared(
  'Labelling',
  Type.Object({
    label: orNull(oneOf(LABELS)),
    requested: count('Events that were meant: ids, each counted once, or the events of the visitor.'),
    labelled: count('Events that have the label by now.'),
    notFound: count('Ids that name nothing.'),
    status: Type.Unsafe<'done' | 'running'>({
      ...oneOf(['done', 'running']),
      description:
        '`running`: it goes on. The same request again, without an Idempotency-Key, tells how far it has come.',
    }),
  }),
)

export const AnyEvent = Type.Union([EventSummary, Event])
export const VisitorEvent = shared(
  'VisitorEvent',
  Type.Object({
    requestId: requestId(),
    timestamp: moment(),
    verdict,
    signals: Type.Object({ bot: flag(), vpn: flag() }),
  }),
)

export const Recognition = shared(
  'Recognition',
  Type.Object({
    requestId: requestId(),
    visitorId: visitorId(),
    visitorFound: flag(),
    method: oneOf(['token', 'exact', 'linked', 'new']),
    confidence: share(),
    anonymitySet: count(),
    compared: count('How many known visitors were compared.'),
    candidates: Type.Array(Type.Object({ visitorId: orNull(visitorId('null: erased since.')), score: Type.Number() }), {
      description: 'Best first.',
    }),
    comparedWith: orNull(visitorId()),
    agreement: orNull(Type.Object(agreements)),
    browserVersion: orNull(oneOf(['same', 'newer', 'older', 'unknown'])),
    network: orNull(oneOf(['address', 'network', 'other', 'unknown'])),
    tokenGeneration: Type.Object({ presented: orNull(count()), issued: count() }),
    evidence: Type.Array(words()),
  }),
)
