// Where an event is that ClickHouse may not have yet: what one process knows of it, and asking all of them.

import type { Ask } from '../bus/ask.ts'
import type { Kv } from '../kv/kv.ts'
import { listMembers } from './leases.ts'

/** A place in the events log. */
export interface EventPlace {
  readonly partition: number
  readonly seq: number
  readonly index: number
}

export interface Original {
  readonly requestId: string
  /** The bodies differed. */
  readonly conflict: boolean
}

/** What is known of an event by all who could know. */
export interface LocatedEvent {
  /** Hashes of ids may coincide: compare the requestId there. */
  readonly place: EventPlace | null
  /** Accepted and not decided yet. */
  readonly pending: boolean
  /** The event of an id that stands for a request which turned out to repeat an earlier one. */
  readonly original: Original | null
  /** False while an event that is not in ClickHouse could be missing here. */
  readonly complete: boolean
}

/** Finds an event of `<workspace>/<env>`. `decided`: that it is pending, wherever, is no answer. */
export type EventLocator = (scope: string, requestId: string, decided?: boolean) => Promise<LocatedEvent>

/** What one process knows. */
export interface LocatorAnswer extends Omit<LocatedEvent, 'complete'> {
  readonly from: string
  /** Partitions of which it would have known the place. */
  readonly covers: readonly number[]
}

/** What one thread knows. */
export type Glimpse = Omit<LocatorAnswer, 'from'>

/** What the threads of a process know. */
export function together(glimpses: readonly Glimpse[]): Glimpse {
  return {
    place: glimpses.find(({ place }) => place !== null)?.place ?? null,
    pending: glimpses.some(({ pending }) => pending),
    original: glimpses.find(({ original }) => original !== null)?.original ?? null,
    covers: glimpses.flatMap(({ covers }) => covers),
  }
}

const SUBJECT = 'event.sight'
const TIMEOUT_MS = 300
/** Processes that accept register in this group: an event they accepted is known to them alone until it is decided. */
export const INGRESS_GROUP = 'ingress'

interface Question {
  readonly scope: string
  readonly requestId: string
}

/**
 * `accepting`: the processes whose answers count for what is pending. A record that came twice is its own original, which leads
 * nowhere.
 */
export function combineAnswers(
  requestId: string,
  glimpses: readonly LocatorAnswer[],
  accepting: readonly string[],
  partitions: number,
): LocatedEvent {
  const covered = new Set(glimpses.flatMap(({ covers }) => covers))
  const heard = new Set(glimpses.map(({ from }) => from))
  return {
    place: glimpses.find(({ place }) => place !== null)?.place ?? null,
    pending: glimpses.some(({ pending }) => pending),
    original: glimpses.find(({ original }) => original !== null && original.requestId !== requestId)?.original ?? null,
    complete: covered.size >= partitions && accepting.every((id) => heard.has(id)),
  }
}

/** Answers other processes by what this one knows. */
export function serveEventLocator(
  ask: Ask,
  answerOf: (scope: string, requestId: string) => Promise<LocatorAnswer>,
): void {
  ask.answer(SUBJECT, (question) => {
    const { scope, requestId } = question as Question
    return answerOf(scope, requestId)
  })
}

/** Asks every process, and waits no longer than for the first that knows or for all that could. */
export function openEventLocator(ask: Ask, kv: Pick<Kv, 'scan'>, partitions: number): EventLocator {
  return async (scope, requestId, decided = false) => {
    const accepting = await listMembers(kv, INGRESS_GROUP)
    const combined = (answers: readonly unknown[]) =>
      combineAnswers(requestId, answers as LocatorAnswer[], accepting, partitions)
    const enough = (answers: readonly unknown[]) => {
      const { place, pending, original, complete } = combined(answers)
      return place !== null || (pending && !decided) || original !== null || complete
    }
    return combined(await ask.ask(SUBJECT, { scope, requestId } satisfies Question, { enough, timeoutMs: TIMEOUT_MS }))
  }
}
