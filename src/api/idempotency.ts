// Idempotency-Key: a request that creates something is answered once, and its repetitions with what it was
// answered, on whatever process they come. What cannot be known to have failed is done again under the same ids.

import { createHash, createHmac } from 'node:crypto'
import { ApiError, invalid } from '../domain/errors.ts'
import type { HttpHeader } from '../http/message.ts'
import type { Kv, KvEntry, KvKey, Put, Scope } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Limits } from '../limits/limits.ts'
import { idempotencyKey, type Kept, putKept } from '../records/idempotency.ts'
import { rateLimited } from './rate-limits.ts'
import type { Keeping, RouteReply } from './routes.ts'

/** After this a process that had begun is taken for dead. */
const RUNNING_MS_MAX = 60_000
const ATTEMPTS_MAX = 5
/** Longer answers are made again instead of kept. */
const KEPT_CHARS_MAX = 65_536
/** New keys of an environment within a day. */
const KEYS_PER_DAY_MAX = 100_000
const KEY = /^[\x20-\x7e]{1,255}$/
const REPLAYED: HttpHeader = ['Idempotent-Replayed', 'true']
const RETRY_AFTER_SECONDS = 1

export interface IdempotencyNeeds {
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly limits: Pick<Limits, 'take'>
  readonly clock: Pick<Clock, 'now'>
}

/** Whose keys are told apart from all others: those of an environment, or the operator's. */
export interface KeyOwner {
  /** Where they lie. */
  readonly scope: Scope
  readonly name: string
  /** What seeds are derived under. */
  readonly secret: string
}

export interface KeyedRequest {
  readonly owner: KeyOwner
  readonly method: string
  readonly path: string
  /** The value of the header, not empty. */
  readonly key: string
  readonly body: Uint8Array
}

export interface Idempotency {
  /**
   * Runs `create` unless the same request was answered in the last 24 hours. `seed` is the same in every repetition. Throws
   * ApiError validation_error, idempotency_key_mismatch, idempotency_in_progress, and what `create` throws.
   */
  once(
    request: KeyedRequest,
    keep: Keeping['keep'],
    show: (kept: unknown, seed: string) => Promise<unknown> | unknown,
    create: (seed: string) => Promise<RouteReply>,
  ): Promise<RouteReply>
}

export const KEEP_ALL: Keeping = { keep: (body) => body, show: (kept) => kept }

export function openIdempotency({ kv, limits, clock }: IdempotencyNeeds): Idempotency {
  return {
    async once({ owner, method, path, key, body }, keep, show, create) {
      if (!KEY.test(key)) throw invalid('Idempotency-Key', 'Must be 1 to 255 printable ASCII characters.')
      const { scope } = owner
      const name = idempotencyKey(sha256(JSON.stringify([method, path, key])))
      const fingerprint = sha256(body)

      async function begin(): Promise<Kept> {
        for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
          const now = clock.now()
          const [entry = null] = await kv.get<Kept>(scope, [name])
          if (entry === null) await countKey()
          else if (entry.value.fingerprint !== fingerprint) throw new ApiError('idempotency_key_mismatch')
          else if (entry.value.done !== null) return entry.value
          else if (entry.value.runningUntil > now) {
            throw new ApiError('idempotency_in_progress', { retryAfter: RETRY_AFTER_SECONDS })
          }
          const at = entry?.value.at ?? now
          const record: Kept = { fingerprint, at, runningUntil: now + RUNNING_MS_MAX, done: null }
          if (await put(record, entry)) return record
        }
        throw new ApiError('idempotency_in_progress', { retryAfter: RETRY_AFTER_SECONDS })
      }

      async function countKey(): Promise<void> {
        const rule = { name: 'idempotency', kind: 'fixed', limit: KEYS_PER_DAY_MAX, windowMs: DAY_MS } as const
        const { allowed, retryAfterMs } = await limits.take(owner.name, [rule])
        if (!allowed) throw rateLimited(retryAfterMs)
      }

      const putOf = (record: Kept): Put => putKept(name, record, clock.now())
      async function put(record: Kept, before: KvEntry | null): Promise<boolean> {
        const check = [[name, before?.version ?? null]] as const
        const [done] = await kv.commit([{ scope, check, put: [putOf(record)] }])
        return done === true
      }
      /** The answer stands whether this is stored or not: a repetition would come to the same. */
      async function note(commit: { readonly put?: readonly Put[]; readonly drop?: readonly KvKey[] }): Promise<void> {
        try {
          await kv.commit([{ scope, ...commit }])
        } catch (error) {
          if (!(error instanceof Unavailable)) throw error
        }
      }

      const begun = await begin()
      const seed = createHmac('sha256', owner.secret)
        .update(JSON.stringify([owner.name, name[1], begun.at]))
        .digest('hex')
      if (begun.done !== null) {
        const { status, headers, kept } = begun.done
        return { status, headers: [...headers, REPLAYED], body: await show(kept, seed) }
      }
      try {
        const reply = await create(seed)
        const { status = 200, headers = [] } = reply
        const done = { status, headers, kept: keep(reply.body) }
        const fits = (JSON.stringify(done.kept) ?? '').length <= KEPT_CHARS_MAX
        await note({ put: [putOf({ ...begun, runningUntil: 0, done: fits ? done : null })] })
        return reply
      } catch (error) {
        const refused = error instanceof ApiError && error.status < 500
        await note(refused ? { drop: [name] } : { put: [putOf({ ...begun, runningUntil: 0 })] })
        throw error
      }
    },
  }
}

const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
