// The shapes the browser SDK takes, sends and returns.

import type { FingerpostError } from './errors.ts'

export type CollectedComponent = { value: unknown; ms?: number } | { error: string; ms?: number }
export type Components = Record<string, CollectedComponent>

export type Automation = {
  webdriver: boolean
  detectors: Record<string, unknown>
}

/** What one look at the page gathered. */
export type Collection = { components: Components; automation: Automation }

export type LoadOptions = {
  /** `pk_live_…` or `pk_test_…` */
  publicKey: string
  /**
   * Base address of the service; default: the origin this script came from. Of several the next one is tried when one cannot be
   * reached or fails; all of them must lead to the same deployment.
   */
  endpoint?: string | readonly string[]
  /** Time for collecting, in ms; what is not ready then is sent as an error entry. Default 1,000. */
  budgetMs?: number
  /** Time for sending, retries included, in ms. Default 10,000. */
  timeoutMs?: number
  /**
   * Whether the browser may keep a token by which it is recognised for certain. False: nothing is stored or read, no cookie is sent
   * or taken; recognition then goes by traits alone. Default true. `allowStorage` changes it, for instance after consent.
   */
  storage?: boolean
  /** Domain of the cookie that script writes, so that subdomains share it: `example.com`. Default: this host alone. */
  cookieDomain?: string
  /**
   * Whether the service may keep the token in a cookie of its own that scripts cannot read, and that outlives script-written storage:
   * `same-origin` where it is served from the page's origin (default), `include` also from another origin that the key's allow-list
   * permits (a subdomain of the page's site), `off` never.
   */
  serverCookie?: 'same-origin' | 'include' | 'off'
  /** A worker is asked for the same values as the page. `auto`: where this SDK is of the page's origin (default); `blob`: also elsewhere. */
  worker?: 'auto' | 'blob' | 'off'
  /** Parameters of the page's address that are sent with it. Default none: a query may hold what nobody else should read. */
  urlParams?: readonly string[]
  /** Whether the fragment of the page's address is sent. Default false. */
  urlFragment?: boolean
  /** For so many seconds the last result is returned again for the same options, also on the next page. Default 0: never. */
  cacheSeconds?: number
  /** Told of every call that failed, before its promise settles. */
  onError?: (error: FingerpostError) => void
}

export type GetOptions = {
  /** The id of the account this visit belongs to. */
  linkedId?: string
  email?: string
  /** Anything worth finding later, for example `{action: 'login'}`; at most 4 KiB. */
  tag?: Record<string, unknown>
  /** Ends the call early: it rejects with code `aborted`. */
  signal?: AbortSignal
}

export type IdentifyResult = {
  requestId: string
  visitorId: string
  visitorFound: boolean
  confidence: number
  firstSeenAt: string | null
  lastSeenAt: string | null
  timestamp: string
  verdict?: 'allow' | 'block' | 'challenge' | null
  challengeType?: string | null
}

/** The visit is recorded, but its decision was not ready in time: ask for the event by its id from a server. */
export type PendingResult = { requestId: string; status: 'pending' }

export type Client = {
  /** Identifies this browser. Rejects with a FingerpostError. */
  get(options?: GetOptions): Promise<IdentifyResult | PendingResult>
  /** The same for pages that go on without an answer: resolves with null where `get` rejects. Never rejects. */
  tryGet(options?: GetOptions): Promise<IdentifyResult | PendingResult | null>
  /** The components the next get() sends, for pages that show a visitor what is collected. */
  components(): Promise<Components>
  /** From now on the browser may keep a token, or may not; what is kept is then forgotten. */
  allowStorage(allowed: boolean): Promise<void>
  /** Forgets the storage token in cookie, localStorage and IndexedDB, and asks the service to end the cookie of its own. */
  reset(): Promise<void>
}
