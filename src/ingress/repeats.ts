// Repeats of a nonce that is decided: answered from the memory of this process where it can, else with the event of the first.

import { ApiError } from '../domain/errors.ts'
import type { Env, StoredEvent } from '../domain/event.ts'
import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import { hash53, homePartition, requestTime } from '../domain/ids.ts'
import { presentResult } from '../identity/result.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Caller } from '../records/auth.ts'
import { readTombstone } from '../records/erasures.ts'
import type { Accept, Incoming } from './accept.ts'
import type { Answers } from './answers.ts'

export interface RepeatsNeeds {
  readonly accept: Accept
  readonly answers: Answers
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly kv: Pick<Kv, 'get' | 'position'>
  readonly partitions: number
  readonly findEvent: (workspace: string, env: Env, requestId: string) => Promise<StoredEvent | 'pending' | null>
}

/** What a client is told, whether its request was the first or repeated one. */
export type AcceptOutcome = { readonly body: string } | { readonly failure: unknown }

export type Answering = (
  incoming: Incoming,
  decided: (outcome: AcceptOutcome, replayed: boolean) => void,
  expired: (requestId: string) => void,
) => Promise<void>

const UNAVAILABLE = { retryAfter: 1 }

/** Accepts what is new and answers what is not, under the rules of `accept`. */
export function answerRepeats({ accept, answers, clock, kv, partitions, findEvent }: RepeatsNeeds): Answering {
  /** Events that are being asked for: repeats that come together ask once. */
  const asking = new Map<string, Promise<StoredEvent | 'pending' | null>>()

  function eventOf(workspace: string, env: Env, requestId: string): Promise<StoredEvent | 'pending' | null> {
    const name = `${workspace}/${env}/${requestId}`
    const known = asking.get(name)
    if (known !== undefined) return known
    const asked = findEvent(workspace, env, requestId).finally(() => asking.delete(name))
    asking.set(name, asked)
    return asked
  }

  /** The event of the first request with a nonce, in the form of the key that repeats it. */
  async function originalOf({ workspace, env, key }: Caller, requestId: string): Promise<string> {
    const event = await eventOf(workspace.id, env, requestId)
    if (event === null || event === 'pending') throw new ApiError('unavailable', UNAVAILABLE)
    return presentResult(event, workspace, key.kind)
  }

  // Its closures keep the hash and not the body: nobody needs that any more while it waits for the disk.
  function acceptNew(incoming: Incoming, nonceHash: number, ...[decided, expired]: Told): Promise<void> {
    const { caller } = incoming
    const { bodyHash } = incoming.facts
    const startedAt = clock.monotonic()
    const remember = (body: string, acceptedAt: number) =>
      answers.add(nonceHash, bodyHash, caller.key.kind, body, acceptedAt)

    async function answerOriginal(requestId: string): Promise<void> {
      try {
        const body = await originalOf(caller, requestId)
        const ageMs = clock.now() - (requestTime(requestId) ?? 0)
        // What was given a time of its own does not say when it was accepted.
        if (ageMs >= 0 && ageMs <= NONCE_WINDOW_MS) remember(body, clock.monotonic() - ageMs)
        decided({ body }, true)
      } catch (error) {
        decided({ failure: error }, true)
      }
    }

    return accept(
      incoming,
      (outcome, replayed) => {
        if ('body' in outcome && !replayed) remember(outcome.body, startedAt)
        if (!('original' in outcome)) decided(outcome, replayed)
        else if (outcome.conflict) decided({ failure: conflict() }, true)
        else void answerOriginal(outcome.original)
      },
      expired,
    )
  }

  async function answerAgain(incoming: Incoming, nonceHash: number, body: string, ...told: Told): Promise<void> {
    const { workspace, env } = incoming.caller
    const { visitorId } = JSON.parse(body) as { readonly visitorId: string }
    const tombstone = await readTombstone(kv, homePartition(visitorId, partitions), workspace.id, env, visitorId)
    if (tombstone !== null) return acceptNew(incoming, nonceHash, ...told)
    told[0]({ body }, true)
  }

  return (incoming, ...told) => {
    const { caller, body, bytes, facts } = incoming
    if (body.nonce === undefined)
      return accept(incoming, (outcome, replayed) => told[0](outcome as AcceptOutcome, replayed), told[1])
    const nonceHash = hash53(`${caller.workspace.id}/${caller.env}/${body.nonce}`)
    const answered = answers.find(nonceHash, caller.key.kind)
    if (answered === null) return acceptNew(incoming, nonceHash, ...told)
    if (answered.bodyHash !== facts.bodyHash) throw conflict()
    if (answered.body === null) return acceptNew(incoming, nonceHash, ...told)
    // The bytes are gone by the time it knows whether they are needed.
    return answerAgain({ ...incoming, bytes: new Uint8Array(bytes) }, nonceHash, answered.body, ...told)
  }
}

type Told = [decided: Parameters<Answering>[1], expired: Parameters<Answering>[2]]

const conflict = () => new ApiError('idempotency_conflict', { field: 'nonce' })
