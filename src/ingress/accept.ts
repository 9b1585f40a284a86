// Accepting: stamp, route to a partition, append durably, and only then let a decision answer. Refuses before accepting,
// never loses afterwards.

import { ApiError } from '../domain/errors.ts'
import { EVIDENCE_HEADERS, type IdentifyBody, type IdentifyMeta } from '../domain/identify.ts'
import { hash53, homePartition, makeRequestId, type RandomBytes } from '../domain/ids.ts'
import type { Parsers } from '../identity/parsers.ts'
import { hardwareKey, hardwarePartition } from '../identity/routing.ts'
import { verifyToken } from '../identity/token.ts'
import { type Batcher, createBatcher } from '../lib/batch.ts'
import type { Clock } from '../lib/clock.ts'
import { readCount, type SharedCounts } from '../lib/counts.ts'
import type { FirstClaims } from '../lib/first-claims.ts'
import { REFUSALS, type Refusal } from '../lib/metrics.ts'
import { must } from '../lib/must.ts'
import { APPEND_BYTES_MAX, type Log } from '../log/log.ts'
import type { Caller } from '../records/auth.ts'
import { type BodyFacts, type Decoded, encodeIdentification } from '../records/identification.ts'
import { type OnDecided, PENDING_CELL, type Settled, type Waiting } from './waiting.ts'

export interface AcceptNeeds {
  readonly log: Pick<Log, 'append' | 'pipelined'>
  readonly waiting: Waiting
  readonly clock: Clock
  readonly random: RandomBytes
  readonly parsers: Parsers
  readonly partitions: number
  /** This ingress process, to which engines reply. */
  readonly ingressId: string
  /** Accepted and undecided identifications of all threads beyond which new ones are refused. */
  readonly pendingMax: number
  readonly pendingCounts: SharedCounts
  /** The partition of the first with a nonce: a repeat must meet it there even when its body would lead elsewhere. */
  readonly nonceRoutes: FirstClaims
  /** Why nothing can be accepted now (disk, log), or null. */
  readonly refusal: () => string | null
  /** Told of each that is refused for no fault of its own. */
  readonly refused: (reason: Refusal) => void
  /** As `BatchLimits` has it. */
  readonly atEndOfTurn?: (run: () => void) => void
}

export interface Incoming {
  readonly caller: Caller
  readonly body: IdentifyBody
  /** The body as it came: there until the call returns. */
  readonly bytes: Uint8Array
  readonly facts: BodyFacts
  readonly atMs: number
  /** The address of the event, canonical. */
  readonly ip: string
  /** Hops the client claims to pass on. */
  readonly hopsBefore: number
  /** From the first-party cookie; a token in the body wins. */
  readonly cookieToken: string | null
  /** Packed; null: the caller traces nothing. */
  readonly trace: string | null
  readonly header: (name: string) => string
}

/** What is full or broken is named first, as in `disk: too little free space`; a process that stops says so in a sentence. */
const refusalOf = (reason: string): Refusal => REFUSALS.find((one) => reason.startsWith(`${one}:`)) ?? 'draining'

/** A record, and what it was made of: whoever decides it in this thread need not take it apart. */
interface Accepted extends Decoded {
  readonly record: Uint8Array
}

const RETRY_AFTER_SECONDS = 1
/** Where one append must be answered before the next, what comes meanwhile shares it. */
const IN_FLIGHT_MAX = { pipelined: 64, oneByOne: 1 }

const lowerCased = (headers: Readonly<Record<string, string>>): Map<string, string> =>
  new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/**
 * `decided` or `expired` is called once after the promise of `accept` resolved or before; when it throws or rejects, neither
 * will be.
 */
export type Accept = (incoming: Incoming, decided: OnDecided, expired: (requestId: string) => void) => Promise<void>

export function createAccept(needs: AcceptNeeds): Accept {
  const { log, waiting, clock, partitions } = needs
  const { atEndOfTurn } = needs
  const inFlightMax = log.pipelined ? IN_FLIGHT_MAX.pipelined : IN_FLIGHT_MAX.oneByOne
  const limits = { itemsMax: 256, bytesMax: APPEND_BYTES_MAX, inFlightMax, ...(atEndOfTurn ? { atEndOfTurn } : {}) }
  // The decisions follow at once, and share the flush.
  const patient = log.pipelined
  const appends: Batcher<Accepted>[] = Array.from({ length: partitions }, (_, partition) =>
    createBatcher((all) => {
      const records = all.map(({ record }) => record)
      return log.append('identifications', partition, records, { patient, attached: all })
    }, limits),
  )

  function unavailable(refusal: Refusal, reason: string): ApiError {
    needs.refused(refusal)
    return new ApiError('unavailable', { message: reason, retryAfter: RETRY_AFTER_SECONDS })
  }

  function metaOf(incoming: Incoming): IdentifyMeta {
    const { caller, body, header } = incoming
    const { workspace, env } = caller
    const text = body.storageToken ?? incoming.cookieToken ?? ''
    const token = text === '' ? null : verifyToken(workspace.tokenSecret, workspace.id, env, text)
    const headers: Record<string, string> = {}
    // A server speaks for its client: its own headers are no evidence then.
    const onBehalf = body.headers !== undefined || body.userAgent !== undefined || body.ip !== undefined
    const told = onBehalf ? lowerCased(body.headers ?? {}) : null
    for (const name of EVIDENCE_HEADERS) {
      const value = told === null ? header(name) : told.get(name)
      if (value !== undefined && value !== '') headers[name] = value
    }
    // A count is evidence enough: addresses of others are not ours to keep.
    if (!onBehalf && incoming.hopsBefore > 0) headers['x-forwarded-for'] = String(incoming.hopsBefore)
    const meta: IdentifyMeta = {
      requestId: makeRequestId(incoming.atMs, needs.random),
      acceptedAt: clock.now(),
      workspace: workspace.id,
      env,
      keyKind: caller.key.kind,
      ip: incoming.ip,
      headers,
      token,
      tokenForged: text !== '' && token === null && workspace.tokensLostAt === undefined,
      replyTo: needs.ingressId,
    }
    return incoming.trace === null ? meta : { ...meta, trace: incoming.trace }
  }

  function partitionOf(meta: IdentifyMeta, body: IdentifyBody): number {
    if (meta.token !== null) return homePartition(meta.token.visitorId, partitions)
    const userAgent = body.userAgent ?? meta.headers['user-agent'] ?? ''
    const hardware = hardwareKey(body, meta.headers, userAgent, needs.parsers)
    return hardwarePartition(meta.workspace, meta.env, hardware, partitions)
  }

  function store(requestId: string, appended: Promise<void>): Promise<void> {
    return appended.then(
      () => waiting.stored(requestId),
      () => {
        const failure = unavailable('storage', 'The identification could not be stored.')
        waiting.cancel(requestId, failure)
        throw failure
      },
    )
  }

  // Not async: while it waited for the disk it would keep the parsed body, which nobody needs any more, from the collector.
  return function accept(incoming, decided, expired) {
    const { caller, body, bytes, facts } = incoming
    const nonce = body.nonce === undefined ? null : `${caller.workspace.id}/${caller.env}/${body.nonce}`
    if (nonce !== null) {
      const first = waiting.byNonce(nonce)
      if (first !== null) {
        if (first.bodyHash !== facts.bodyHash) throw new ApiError('idempotency_conflict', { field: 'nonce' })
        const original: Settled = { original: first.requestId, conflict: false }
        const sameForm = first.keyKind === caller.key.kind
        waiting.join(
          first.requestId,
          // A decision comes in the form of the first's key, and a browser must not get what a server gets.
          (outcome, replayed) => decided(sameForm || !('body' in outcome) ? outcome : original, replayed),
          () => expired(first.requestId),
        )
        return Promise.resolve()
      }
    }
    const reason = needs.refusal()
    if (reason !== null) throw unavailable(refusalOf(reason), reason)
    if (readCount(needs.pendingCounts, PENDING_CELL) >= needs.pendingMax)
      throw unavailable('pending', 'Too many identifications wait for a decision.')

    const meta = metaOf(incoming)
    const { requestId } = meta
    const nonceHash = nonce === null ? 0 : hash53(nonce)
    const home = partitionOf(meta, body)
    const routed = nonce === null ? null : needs.nonceRoutes.claim(nonceHash, home)
    const partition = routed ?? home
    // Away from its visitor's home a token must not count: should the first with this nonce not be there after all, the
    // visitor would get a second writer.
    const strayed = meta.token !== null && homePartition(meta.token.visitorId, partitions) !== partition
    const stored = strayed ? { ...meta, token: null } : meta
    const accepted = { record: encodeIdentification(stored, bytes), meta: stored, body, facts }
    const isRepeat = routed !== null
    const first = { bodyHash: facts.bodyHash, keyKind: caller.key.kind, scope: `${caller.workspace.id}/${caller.env}` }
    // A repeat of a decided nonce makes no event, so its id must not be given out as pending, and later repeats are not
    // to be compared with it: it waits for the event of the first.
    if (isRepeat) waiting.open(requestId, null, first, decided, null)
    else waiting.open(requestId, nonce, first, decided, () => expired(requestId))
    return store(requestId, must(appends[partition], 'a partition').add(accepted, accepted.record.length))
  }
}
