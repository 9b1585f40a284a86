// Addresses made up for tests of signals: nothing is known of them but what a test says.

import type { NetworkEvidence } from '../../src/engine/signals/evidence.ts'
import { type AddressFacts, NO_FACTS } from '../../src/ipintel/addresses.ts'

export const AT_MS = Date.UTC(2026, 10, 21, 12)

export const NO_NETWORK: NetworkEvidence = {
  address: NO_FACTS,
  country: null,
  timezone: null,
  atMs: AT_MS,
  nowMs: AT_MS,
}

/** An address of which lists of that age (seconds) say something. */
export function networkOf(
  facts: Partial<AddressFacts>,
  place: Partial<Pick<NetworkEvidence, 'country' | 'timezone'>> = {},
): NetworkEvidence {
  return { ...NO_NETWORK, ...place, address: { ...NO_FACTS, ...facts } }
}
