// A record of identifications as a partition takes it in.

import type { Decoded } from '../records/identification.ts'

export interface Frame {
  readonly seq: number
  readonly bytes: Uint8Array
  /** What it was made of, where it was accepted in this thread a moment ago. */
  readonly attached?: unknown
}

export const decodedOf = ({ attached }: Frame): Decoded | null =>
  attached === undefined ? null : (attached as Decoded)
