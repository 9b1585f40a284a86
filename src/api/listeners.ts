// Ending what listens: connections are served for a while, then requests in flight, and what comes late is refused.

import type { Http } from '../http/server.ts'

const DRAIN_MS = 15_000

/**
 * From its beginning on each connection ends with its next answer. A proxy keeps some open that it does not use, and would take a
 * refusal on one of them for ours: only when `lingered` is over `refuse` is called. Resolves when nothing is in flight, or late.
 */
export async function drainAll(
  listeners: readonly Http[],
  lingered: Promise<unknown>,
  refuse: () => void,
): Promise<void> {
  for (const http of listeners) http.stopListening()
  const drained = listeners.map((http) => http.drain(0))
  await lingered
  await Promise.all(drained)
  refuse()
  await Promise.all(listeners.map((http) => http.drain(DRAIN_MS)))
}
