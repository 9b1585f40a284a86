// The shapes the browser SDK takes, sends and returns.

export type Component = { value: unknown; ms?: number } | { error: string; ms?: number }
export type Components = Record<string, Component>

export type Automation = {
  webdriver: boolean
  detectors: Record<string, unknown>
}

/** What one look at the page gathered. */
export type Collection = { components: Components; automation: Automation }

export type LoadOptions = {
  /** `pk_live_…` or `pk_test_…` */
  publicKey: string
  /** Base address of the service; default: the origin this script came from. */
  endpoint?: string
  /** Time for collecting, in ms; what is not ready then is sent as an error entry. Default 1,000. */
  budgetMs?: number
  /** Time for sending, retries included, in ms. Default 10,000. */
  timeoutMs?: number
}

export type GetOptions = {
  /** The id of the account this visit belongs to. */
  linkedId?: string
  email?: string
  /** Anything worth finding later, for example `{action: 'login'}`; at most 4 KiB. */
  tag?: Record<string, unknown>
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
  /** The components the next get() sends, for pages that show a visitor what is collected. */
  components(): Promise<Components>
  /** Forgets the storage token in cookie, localStorage and IndexedDB. */
  reset(): Promise<void>
}
