// The identify request (src/docs/contract.md, Identification): its schema, its limits, and the record the ingress makes of an accepted one.

import type { Env } from './event.ts'
import { NativeSchema } from './native.ts'
import { type Static, strict, type TObjectOptions, type TSchema, Type } from './schema.ts'
import type { KeyKind } from './workspace.ts'

export const IDENTIFY_BODY_BYTES_MAX = 65_536
export const JSON_DEPTH_MAX = 32
export const LINKED_ID_CHARS_MAX = 256
export const TAG_BYTES_MAX = 4_096
export const TAG_DEPTH_MAX = 4
export const NONCE_WINDOW_MS = 120_000
/** Longer page addresses are accepted and cut to this many characters before they are stored. */
export const URL_CHARS_STORED_MAX = 2_048

const text = (maxLength: number) => Type.String({ maxLength })
const flag = Type.Boolean()
const name = Type.String({ minLength: 1, maxLength: 64 })
/** Any names. Type.Record would say it as a pattern, and try that on every name. */
const record = <T extends TSchema>(items: T, options: TObjectOptions = {}) =>
  Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: items, ...options })

const MockDetail = Type.Object(
  { detected: flag, provider: Type.Optional(Type.Union([name, Type.Null()])), type: Type.Optional(name) },
  strict,
)
// Not a union of schemas, whose errors could not name the member that is wrong.
const mockSignal = Type.Unsafe<boolean | Static<typeof MockDetail>>({ ...MockDetail, type: ['boolean', 'object'] })
const unit = Type.Number({ minimum: 0, maximum: 1 })

const MockSchema = Type.Object(
  {
    at: Type.Optional(text(40)),
    ip: Type.Optional(text(45)),
    country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$', maxLength: 2 })),
    signals: Type.Optional(
      Type.Object(
        {
          bot: Type.Optional(mockSignal),
          vpn: Type.Optional(mockSignal),
          incognito: Type.Optional(mockSignal),
          tampered: Type.Optional(mockSignal),
          emulator: Type.Optional(mockSignal),
          proxy: Type.Optional(mockSignal),
          tor: Type.Optional(mockSignal),
          rootedDevice: Type.Optional(mockSignal),
          clonedApp: Type.Optional(mockSignal),
        },
        strict,
      ),
    ),
    scores: Type.Optional(
      Type.Object(
        {
          abuse: Type.Optional(unit),
          ato: Type.Optional(unit),
          bot: Type.Optional(unit),
          suspect: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
        },
        strict,
      ),
    ),
  },
  strict,
)

/** A component is `{value, ms?}` or `{error}`; what else it holds is kept and ignored. */
const ComponentSchema = Type.Object({
  value: Type.Optional(Type.Unknown()),
  ms: Type.Optional(Type.Number()),
  error: Type.Optional(Type.Unknown()),
})

export const IdentifySchema = Type.Object(
  {
    nonce: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{16,64}$', maxLength: 64 })),
    sdk: Type.Optional(Type.Object({ name: text(64), version: text(64) }, strict)),
    storageToken: Type.Optional(Type.Union([text(512), Type.Null()])),
    linkedId: Type.Optional(Type.String({ minLength: 1, maxLength: LINKED_ID_CHARS_MAX })),
    email: Type.Optional(Type.String({ maxLength: 320, pattern: '^\\s*[^\\s@]+@[^\\s@]+\\s*$' })),
    tag: Type.Optional(record(Type.Unknown())),
    url: Type.Optional(text(8_192)),
    referrer: Type.Optional(text(8_192)),
    components: Type.Optional(record(ComponentSchema)),
    automation: Type.Optional(
      Type.Object(
        {
          webdriver: Type.Optional(flag),
          detectors: Type.Optional(record(Type.Unknown())),
        },
        strict,
      ),
    ),
    native: Type.Optional(NativeSchema),
    mock: Type.Optional(MockSchema),
    ip: Type.Optional(text(45)),
    userAgent: Type.Optional(text(2_048)),
    headers: Type.Optional(record(text(4_096), { maxProperties: 64 })),
  },
  strict,
)

export type Mock = Static<typeof MockSchema>
export type IdentifyBody = Static<typeof IdentifySchema>
export type Component = Static<typeof ComponentSchema>

/** What a genuine storage token says. */
export interface TokenClaims {
  readonly visitorId: string
  readonly generation: number
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
}

/** Everything about an accepted request besides its body; travels in front of the raw body bytes in the log. */
export interface IdentifyMeta {
  readonly requestId: string
  /** Real time of acceptance, milliseconds. The event's own time is inside the requestId. */
  readonly acceptedAt: number
  readonly workspace: string
  readonly env: Env
  readonly keyKind: KeyKind
  /** The client's canonical address. */
  readonly ip: string
  /** Lower-case names; only those the engine reads. */
  readonly headers: Readonly<Record<string, string>>
  readonly token: TokenClaims | null
  /** A token was sent that we never signed, or that belongs to another workspace or environment. */
  readonly tokenForged: boolean
  /** The ingress process whose client waits; empty when nobody waits. */
  readonly replyTo: string
  /** Of the caller's `traceparent`, as domain/trace.ts packs it; absent when none came. */
  readonly trace?: string
}

/** Request headers that carry evidence; the ingress keeps no other. */
export const EVIDENCE_HEADERS: readonly string[] = [
  'user-agent',
  'accept-language',
  'accept',
  'accept-encoding',
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'sec-ch-ua-platform-version',
  'sec-ch-ua-model',
  'sec-ch-ua-full-version-list',
  'sec-fetch-site',
  'sec-fetch-mode',
  'sec-fetch-dest',
  'via',
  'forwarded',
]
