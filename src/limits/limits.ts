// Counters with an answer: whether a caller may go on, and what to tell it.

/** `fixed`: wall-clock windows that begin at multiples of `windowMs`. `sliding`: any span of `windowMs`, exact to the millisecond. */
export interface RateRule {
  /** Names the counter: rules of one name, kind and window count together. Letters, digits and `_.:/-`, up to 64. */
  readonly name: string
  readonly kind: 'fixed' | 'sliding'
  /** The most a window takes; 0 refuses everything. */
  readonly limit: number
  readonly windowMs: number
}

export interface Window {
  readonly limit: number
  readonly remaining: number
  /** When the full limit is there again, in milliseconds since the Unix epoch: the end of a fixed window, or when a sliding one has emptied. */
  readonly resetAt: number
}

export interface Taken {
  readonly allowed: boolean
  /** 0 when allowed, else the milliseconds after which all rules would allow the same, if nobody takes anything meanwhile. */
  readonly retryAfterMs: number
  /** One per rule, in their order, after this take. */
  readonly windows: readonly Window[]
}

export const LIMIT_MAX = 1_000_000_000
/** A sliding window remembers every unit it counted. */
export const SLIDING_LIMIT_MAX = 10_000
export const WINDOW_MS_MAX = 24 * 3_600_000
export const RULES_MAX = 8

export interface Limits {
  /**
   * Takes `cost` units (default 1; 0 only looks) from every rule's window for `key`, or from none of them. `key` is up to 200
   * letters, digits and `_.:/-`. RangeError for rules that cannot be; Unavailable when nobody can tell, and then the units may
   * have been taken.
   */
  take(key: string, rules: readonly RateRule[], cost?: number): Promise<Taken>
  close(): Promise<void>
}
