// The event: what one identification became. StoredEvent is the full private form that rules read and ClickHouse keeps;
// the masked public form of the contract is made from it in events/present.ts.

export const ENVS = ['live', 'test'] as const
export type Env = (typeof ENVS)[number]
export type Verdict = 'allow' | 'challenge' | 'block'
export type ChallengeType = 'captcha' | 'otp' | 'email' | 'webauthn' | 'device_check' | 'custom'
export const VERDICTS: readonly Verdict[] = ['allow', 'challenge', 'block']
export const CHALLENGE_TYPES: readonly ChallengeType[] = [
  'captcha',
  'otp',
  'email',
  'webauthn',
  'device_check',
  'custom',
]

export type SignalName =
  | 'bot'
  | 'vpn'
  | 'incognito'
  | 'tampered'
  | 'emulator'
  | 'proxy'
  | 'tor'
  | 'rootedDevice'
  | 'clonedApp'
export const SIGNAL_NAMES: readonly SignalName[] = [
  'bot',
  'vpn',
  'incognito',
  'tampered',
  'emulator',
  'proxy',
  'tor',
  'rootedDevice',
  'clonedApp',
]

/** `undetermined`: the data at hand cannot tell. It reads as false wherever the contract has a boolean. */
export type SignalState = 'detected' | 'clear' | 'undetermined'

export interface Signal {
  readonly state: SignalState
  /** 0 to 1, four decimals; 0 when undetermined. */
  readonly confidence: number
  /** Which checks raised it, as stable codes. */
  readonly methods: readonly string[]
  /** Where the evidence came from: client | server | native | mock. */
  readonly source: string
  readonly dataAgeSeconds: number | null
}

export interface Signals extends Readonly<Record<SignalName, Signal>> {
  readonly vpnProvider: string | null
  readonly botType: string | null
}

export type ScoreName = 'abuse' | 'ato' | 'bot' | 'suspect'
/** abuse, ato and bot 0 to 1 with four decimals; suspect 0 to 100 with two. */
export type Scores = Readonly<Record<ScoreName, number>>
export interface ScoreReason {
  readonly score: ScoreName
  readonly reason: string
  readonly weight: number
}

export interface Device {
  /** Windows | macOS | Linux | ChromeOS | iOS | Android | other */
  readonly platform: string
  readonly osVersion: string | null
  /** Family and major version, `Chrome 147`. */
  readonly browser: string
  readonly browserVersion: string | null
  readonly gpu: string | null
  /** desktop | mobile | tablet | other */
  readonly type: string
  readonly screen: { readonly w: number; readonly h: number } | null
  readonly model: string | null
  readonly appVersion: string | null
  readonly language: string | null
  readonly timezone: string | null
}

export interface IpFacts {
  /** Full canonical address. Never leaves the service unmasked. */
  readonly address: string
  readonly city: string | null
  readonly region: string | null
  readonly country: string | null
  readonly lat: number | null
  readonly lng: number | null
  readonly timezone: string | null
  readonly asn: number | null
  readonly asnName: string | null
  readonly datacenter: boolean
  readonly blocklisted: boolean
  readonly blocklists: readonly string[]
}

export interface RuleMatch {
  readonly id: string
  readonly name: string
  readonly priority: number
  readonly verdict: Verdict
  readonly deciding: boolean
}

export type IdentityMethod = 'token' | 'exact' | 'linked' | 'new'
export interface Identity {
  readonly method: IdentityMethod
  /** How many known visitors look alike enough to be confused with this one; 1 means alone. */
  readonly anonymitySet: number
  /** How many known visitors were compared. */
  readonly candidates: number
  /** The generation of the storage token handed out with this event. */
  readonly generation: number
  /** The visitor recognised, where it was merged into the event's: its storage keeps its own token. */
  readonly holder?: string
  /** What the record that was recognised counts, this event included, where the visitor's are the sums of several records. */
  readonly recorded?: Recorded
  /** Absent where nobody was weighed and nothing was noticed. */
  readonly explanation?: Explanation
}

/** Times in milliseconds. */
export interface Recorded {
  readonly totalVisits: number
  readonly firstSeenAt: number
  readonly lastSeenAt: number
}

/** How an attribute compares with what is known: `alternates` is a value the same device had before. */
export type Agreement = 'agrees' | 'alternates' | 'differs' | 'unknown'

/** What a recognition rested on. */
export interface Explanation {
  /** Best first; the visitor a token names stands alone. */
  readonly candidates: readonly { readonly visitorId: string; readonly score: number }[]
  /** The best candidate's attributes against this visit's, as `identity/explain.ts` writes them. */
  readonly comparison: string | null
  /** Codes of what was noticed about the token and the candidates. */
  readonly evidence: readonly string[]
  /** The generation of the token that came with the request. */
  readonly presentedGeneration: number | null
}

/**
 * How often and how varied, this event included (src/docs/contract.md, Visitors). The order is that of the row, so a name is added at the end
 * and never taken away.
 */
export const VELOCITY_NAMES = [
  'visitor.events.5m',
  'visitor.events.1h',
  'visitor.events.24h',
  'visitor.ips.24h',
  'visitor.countries.24h',
  'visitor.linkedIds.24h',
  'ip.events.5m',
  'ip.events.1h',
  'ip.events.24h',
  'ip.visitors.24h',
  'linkedId.visitors.24h',
  'linkedId.ips.24h',
] as const
export type VelocityName = (typeof VELOCITY_NAMES)[number]
/** Whole numbers; null where there is nothing to count, such as the accounts of an event that names none. */
export type Velocity = Readonly<Record<VelocityName, number | null>>

/** Whom a visit may be of besides the visitor it was given to, and how likely that is: 0 to 1, four decimals. */
export interface PossibleVisitor {
  readonly visitorId: string
  readonly confidence: number
}

export interface StoredEvent {
  readonly workspace: string
  readonly env: Env
  readonly requestId: string
  readonly visitorId: string
  readonly visitorFound: boolean
  /** 0 to 1, four decimals. */
  readonly confidence: number
  /** Of a new visitor, the known one it is likeliest to be, where that is worth telling. Nothing is counted or listed under it. */
  readonly possible: PossibleVisitor | null
  /** Milliseconds since the epoch; the time inside the requestId. */
  readonly timestamp: number
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly device: Device
  readonly signals: Signals
  readonly scores: Scores
  readonly scoreReasons: readonly ScoreReason[]
  readonly ip: IpFacts
  readonly verdict: Verdict | null
  readonly challengeType: ChallengeType | null
  readonly matchedRule: { readonly id: string; readonly name: string; readonly priority: number } | null
  readonly matchedRules: readonly RuleMatch[]
  readonly monitorMatches: readonly RuleMatch[]
  readonly rulesRevision: number
  /** Who sent it: a page or an app, whose account, email and tag are claims, or a server. null: not kept, before there was this. */
  readonly keyKind: 'public' | 'secret' | null
  /** Of the table that weighed signals and scores; null: not kept, or not weighed. */
  readonly weightsVersion: number | null
  readonly linkedId: string | null
  readonly email: string | null
  readonly tag: Readonly<Record<string, unknown>>
  readonly url: string | null
  readonly identity: Identity
  readonly visitor: {
    readonly totalVisits: number
    readonly linkedAccounts: number
    /** Seconds between firstSeenAt and timestamp. */
    readonly ageSeconds: number
  }
  /** null: not counted. */
  readonly velocity: Velocity | null
  readonly label: 'fraud' | 'legitimate' | null
  /** Set when the record could not be decided; such an event has verdict null. */
  readonly evaluationError: string | null
}

/** Rounds to four decimals before any rule sees the value, so that rules and ClickHouse agree to the bit. */
export const quantise4 = (x: number): number => Math.round(Math.min(1, Math.max(0, x)) * 10_000) / 10_000
export const quantiseSuspect = (x: number): number => Math.round(Math.min(100, Math.max(0, x)) * 100) / 100

/** What is known of an identification before any rule has spoken: the input of rules, as the field registry reads it. */
export type Facts = Omit<
  StoredEvent,
  | 'verdict'
  | 'challengeType'
  | 'matchedRule'
  | 'matchedRules'
  | 'monitorMatches'
  | 'rulesRevision'
  | 'weightsVersion'
  | 'label'
  | 'evaluationError'
>
