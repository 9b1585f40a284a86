// Hints between processes: at most once, never the truth. Whoever misses one finds the same fact by polling.

export type Unsubscribe = () => void

export interface Bus {
  /** Never fails and never waits for receivers. `message` is plain data (no functions, no class instances). */
  publish(subject: string, message: unknown): void
  /** Receives every message published to exactly this subject after the call returned. */
  subscribe(subject: string, receive: (message: unknown) => void): Unsubscribe
  close(): Promise<void>
}
