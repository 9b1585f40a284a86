// Hints between processes: at most once, never the truth. Whoever misses one finds the same fact by polling.

export type Unsubscribe = () => void

export interface Bus {
  /**
   * Never fails and never waits for receivers. `message` is plain data (no functions, no class instances). Messages of one
   * publisher arrive in order, also at its own receivers; what cannot be delivered now is lost and reported to the opener.
   */
  publish(subject: string, message: unknown): void
  /**
   * Receives every message this process publishes to exactly this subject after the call returned. Of other processes:
   * every message published once a server of the bus has heard of the subscription. That is known from the first answer of
   * that server to something sent later over the same connection, such as an append to the log; before it, and while the
   * connection is lost, messages may be missed. Where servers form a cluster, the news takes moments more to the others.
   */
  subscribe(subject: string, receive: (message: unknown) => void): Unsubscribe
  /** A message may be lost on its way without anybody noticing; inside one process only an overflow loses any, and is reported. */
  readonly isLossy: boolean
  close(): Promise<void>
}

const LOSSLESS_FACTOR = 10

/** How often receivers look for what a lost message would have told them: `lossyMs`, or less often where none is lost. Milliseconds. */
export const pollEveryMs = ({ isLossy }: Pick<Bus, 'isLossy'>, lossyMs: number): number =>
  isLossy ? lossyMs : LOSSLESS_FACTOR * lossyMs
