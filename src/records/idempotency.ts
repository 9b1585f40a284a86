// What is kept of a request with an Idempotency-Key, so that its repetitions are answered as it was.

import type { KvKey, Put } from '../kv/kv.ts'

export const IDEMPOTENCY = 'idempotency'
const KEPT_MS = 86_400_000
/** `name`: a digest that says which key of which endpoint it is. */
export const idempotencyKey = (name: string): KvKey => [IDEMPOTENCY, name]

export interface Kept {
  readonly fingerprint: string
  /** When the key was first seen: a later use of the same key, a day on, is another request. */
  readonly at: number
  /** Milliseconds; 0: nobody works on it. */
  readonly runningUntil: number
  readonly done: {
    readonly status: number
    readonly headers: readonly (readonly [name: string, value: string])[]
    readonly kept: unknown
  } | null
}

/** A day after the key was first seen, milliseconds. */
export const keptUntil = ({ at }: Kept): number => at + KEPT_MS

export const putKept = (key: KvKey, value: Kept, nowMs: number): Put => ({
  key,
  value,
  ttlMs: Math.max(1, keptUntil(value) - nowMs),
})
