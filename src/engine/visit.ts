// One identification as it came out of the log: decoded, with everything in it that names entries of the state, made once.

import type { IdentifyBody, IdentifyMeta } from '../domain/identify.ts'
import { hash53Of, requestTime } from '../domain/ids.ts'
import { type Attributes, readAttributes } from '../identity/attributes.ts'
import { matchKeys, nativeKeyOf } from '../identity/keys.ts'
import type { Parsers } from '../identity/parsers.ts'
import { providerOf } from '../identity/provider.ts'
import { isKnownBrowser } from '../identity/user-agent.ts'
import type { AddressFacts } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import { type Decoded, takeApart } from '../records/identification.ts'
import { decodedOf, type Frame } from './frames.ts'
import { type EventCountsOf, eventCountsOf } from './velocity/tally.ts'

/** One decoded identification. */
export interface Visit {
  readonly seq: number
  readonly meta: IdentifyMeta
  readonly body: IdentifyBody
  /** The event's time, milliseconds: the one inside the requestId. */
  readonly atMs: number
  readonly ip: string
  /** What the tables know of it. */
  readonly address: AddressFacts
  readonly userAgent: string
  readonly headers: Readonly<Record<string, string>>
  readonly attributes: Attributes
  /** As `matchKeys` has them, with the app's id behind them. */
  readonly keys: readonly string[]
  /** One of `keys`: what an app calls its installation. */
  readonly nativeKey: string | null
  /** Begins the ids of all that the partition keeps of the environment: made once, and that of its family with it. */
  readonly tenant: string
  /** That of the visitor whose token it has. */
  readonly tokenId: string | null
  /**
   * Where the partition keeps what it learned of the visit's system and browser. Clients that name themselves as they like are one
   * family: each name they make up would be a record that stays.
   */
  readonly familyId: string
  /** 0 without a nonce. */
  readonly nonceHash: number
  /** As `BodyFacts` has it. */
  readonly bodyHash: number
  readonly counts: EventCountsOf
}

/** What is known of an identification whose body nobody has read: enough to say that it failed. */
export type UnreadVisit = Pick<Visit, 'seq' | 'meta' | 'tenant' | 'tokenId' | 'familyId' | 'nonceHash' | 'bodyHash'>

/** An identification that cannot be read: `failed` is what its event says, `why` what its dead letter says. */
export interface FailedVisit extends UnreadVisit {
  readonly failed: string
  readonly why: string
}

/** What the state calls a visitor of the environment; mostly the token's. */
export const visitorIdIn = (
  { meta, tenant, tokenId }: Pick<Visit, 'meta' | 'tenant' | 'tokenId'>,
  visitorId: string,
): string => (tokenId !== null && meta.token?.visitorId === visitorId ? tokenId : tenant + visitorId)

/** Lone surrogates survive neither UTF-8 nor ClickHouse: they become U+FFFD before anything reads them. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item)]))
}

interface EnvironmentNames {
  readonly workspace: string
  readonly env: string
  readonly environment: string
  readonly tenant: string
  /** By browser and then by system what was made of both. */
  readonly families: Map<string, Map<string, string>>
}

const namesIn = (workspace: string, env: string): EnvironmentNames => ({
  workspace,
  env,
  environment: `${workspace}/${env}`,
  tenant: `${workspace}/${env}/`,
  families: new Map(),
})
/** Most visits are of the environment of the visit before. */
let latestNames = namesIn('', '')

function namesOf(workspace: string, env: string): EnvironmentNames {
  if (latestNames.workspace !== workspace || latestNames.env !== env) latestNames = namesIn(workspace, env)
  return latestNames
}

/** Nearly all visits are of a few systems and browsers, whose texts are made once. */
function familyIdOf({ tenant, families }: EnvironmentNames, { os, browserFamily, ua }: Attributes): string {
  const browser = ua.engine === 'other' || !isKnownBrowser(browserFamily) ? 'other' : browserFamily
  let ofBrowser = families.get(browser)
  if (ofBrowser === undefined) {
    ofBrowser = new Map()
    families.set(browser, ofBrowser)
  }
  let id = ofBrowser.get(os)
  if (id === undefined) {
    id = `${tenant}${os}/${browser}`
    ofBrowser.set(os, id)
  }
  return id
}

/** Throws when the bytes are no identification at all. */
export const decodeFrame = (frame: Frame): Decoded => decodedOf(frame) ?? takeApart(frame.bytes)

const tokenIdOf = ({ token }: IdentifyMeta, tenant: string): string | null =>
  token === null ? null : tenant + token.visitorId

const nonceHashOf = ({ nonce }: IdentifyBody, environment: string): number =>
  nonce === undefined ? 0 : hash53Of(environment, '/', nonce)

export function unreadVisitOf(seq: number, { meta, body, facts }: Decoded): UnreadVisit {
  const { environment, tenant } = namesOf(meta.workspace, meta.env)
  return {
    seq,
    meta,
    tenant,
    tokenId: tokenIdOf(meta, tenant),
    // Nothing is learned from it.
    familyId: '',
    nonceHash: nonceHashOf(body, environment),
    bodyHash: facts.bodyHash,
  }
}

export function visitOf(
  seq: number,
  { meta, body: parsed, facts }: Decoded,
  parsers: Parsers,
  locate: (ip: string) => AddressFacts,
): Visit {
  const body = facts.mayHoldHalves ? (wellFormed(parsed) as IdentifyBody) : parsed
  const { ip, headers } = meta
  const userAgent = body.userAgent ?? headers['user-agent'] ?? ''
  const attributes = readAttributes(body, headers, userAgent, parsers)
  const address = locate(ip)
  const looks = matchKeys(attributes, ip, providerOf(ip, address.network?.asn ?? null))
  const nativeKey = nativeKeyOf(body.native)
  const atMs = must(requestTime(meta.requestId), 'a request id with a time')
  const names = namesOf(meta.workspace, meta.env)
  const { environment, tenant } = names
  return {
    seq,
    meta,
    body,
    atMs,
    ip,
    address,
    userAgent,
    headers,
    attributes,
    keys: nativeKey === null ? looks : [...looks, nativeKey],
    nativeKey,
    tenant,
    tokenId: tokenIdOf(meta, tenant),
    familyId: familyIdOf(names, attributes),
    nonceHash: nonceHashOf(body, environment),
    bodyHash: facts.bodyHash,
    counts: eventCountsOf(environment, { at: atMs, acceptedAt: meta.acceptedAt }, ip, body.linkedId ?? null),
  }
}
