// The answers of the last two minutes by nonce, so that a repeat costs neither log nor engine nor history. Their bytes and what they are
// found by lie in flat arrays: as objects and texts of the heap they were what made most of it old (D229).

import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import type { KeyKind } from '../domain/workspace.ts'
import { createHashIndex, NO_ENTRY } from '../lib/hash-index.ts'

export interface Answered {
  /** Of the request's body, as `BodyFacts` has it. */
  readonly bodyHash: number
  /** What was answered; null: keys of this kind have not been answered by this process. */
  readonly body: string | null
}

export interface Answers {
  /** What became of the nonce when it was accepted within the window; null: only its owner can tell. */
  find(nonceHash: number, keyKind: KeyKind): Answered | null
  /** `acceptedAt`: monotonic milliseconds, of the first request. */
  add(nonceHash: number, bodyHash: number, keyKind: KeyKind, body: string, acceptedAt: number): void
}

/** Of answers in each of two generations: some 30,000 answers to browsers in both. */
const BYTES_MAX = 16_777_216
/** In each generation, whatever they are long. */
const ENTRIES_MAX = 32_768
/** A character of a JavaScript string takes at most so many bytes. */
const CHAR_BYTES_MAX = 3
const KINDS: Readonly<Record<KeyKind, number>> = { public: 0, secret: 1 }
const KIND_COUNT = 2

function createGeneration(bytesMax: number, entriesMax: number) {
  const nonceHashes = new Float64Array(entriesMax)
  const bodyHashes = new Float64Array(entriesMax)
  const acceptedAt = new Float64Array(entriesMax)
  /** By entry and kind of key: where the answer lies in `bytes`; of no bytes where there is none. */
  const starts = new Int32Array(KIND_COUNT * entriesMax)
  const lengths = new Int32Array(KIND_COUNT * entriesMax)
  const bytes = Buffer.allocUnsafeSlow(bytesMax)
  const index = createHashIndex<number>((entry) => nonceHashes[entry] as number)
  let used = 0

  return {
    find: (nonceHash: number): number => index.find(nonceHash, nonceHash),
    bodyHash: (entry: number): number => bodyHashes[entry] as number,
    acceptedAt: (entry: number): number => acceptedAt[entry] as number,
    body(entry: number, kind: number): string | null {
      const at = KIND_COUNT * entry + kind
      const start = starts[at] as number
      const length = lengths[at] as number
      return length === 0 ? null : bytes.toString('utf8', start, start + length)
    },
    hasRoom: (body: string): boolean => index.size() < entriesMax && used + CHAR_BYTES_MAX * body.length <= bytesMax,
    /** Of another body than before, or accepted at another time, it is another entry in the same place. */
    put(nonceHash: number, bodyHash: number, kind: number, body: string, at: number): void {
      let entry = index.find(nonceHash, nonceHash)
      const isSame = entry !== NO_ENTRY && bodyHashes[entry] === bodyHash && acceptedAt[entry] === at
      if (entry === NO_ENTRY) {
        entry = index.size()
        nonceHashes[entry] = nonceHash
        index.put(nonceHash, nonceHash, entry)
      }
      if (!isSame) lengths.fill(0, KIND_COUNT * entry, KIND_COUNT * (entry + 1))
      bodyHashes[entry] = bodyHash
      acceptedAt[entry] = at
      const length = bytes.write(body, used, 'utf8')
      starts[KIND_COUNT * entry + kind] = used
      lengths[KIND_COUNT * entry + kind] = length
      used += length
    },
    clear(): void {
      index.clear()
      used = 0
    },
  }
}

/** `monotonic`: milliseconds that never jump. */
export function createAnswers(monotonic: () => number, bytesMax = BYTES_MAX, entriesMax = ENTRIES_MAX): Answers {
  let young = createGeneration(bytesMax, entriesMax)
  let old = createGeneration(bytesMax, entriesMax)
  let turnedAt = monotonic()

  type Generation = typeof young

  /** The entry of the nonce in one of them, or NO_ENTRY where it has none of the window. */
  function recentIn(generation: Generation, nonceHash: number): number {
    const entry = generation.find(nonceHash)
    return entry !== NO_ENTRY && monotonic() - generation.acceptedAt(entry) <= NONCE_WINDOW_MS ? entry : NO_ENTRY
  }

  function turn(now: number): void {
    ;[young, old] = [old, young]
    young.clear()
    turnedAt = now
  }

  return {
    find(nonceHash, keyKind) {
      const kind = KINDS[keyKind]
      const younger = recentIn(young, nonceHash)
      const older = recentIn(old, nonceHash)
      if (younger === NO_ENTRY && older === NO_ENTRY) return null
      const bodyHash = younger === NO_ENTRY ? old.bodyHash(older) : young.bodyHash(younger)
      const body = younger === NO_ENTRY ? null : young.body(younger, kind)
      if (body !== null || older === NO_ENTRY || old.bodyHash(older) !== bodyHash) return { bodyHash, body }
      return { bodyHash, body: old.body(older, kind) }
    },
    add(nonceHash, bodyHash, keyKind, body, acceptedAt) {
      const now = monotonic()
      if (now - acceptedAt > NONCE_WINDOW_MS) return
      if (!young.hasRoom(body) || now - turnedAt >= NONCE_WINDOW_MS) turn(now)
      if (!young.hasRoom(body)) return
      const younger = recentIn(young, nonceHash)
      const older = younger === NO_ENTRY ? recentIn(old, nonceHash) : NO_ENTRY
      // What another kind of key was told of the same request counts from the time of that request.
      let at = acceptedAt
      if (younger !== NO_ENTRY && young.bodyHash(younger) === bodyHash) at = young.acceptedAt(younger)
      else if (older !== NO_ENTRY && old.bodyHash(older) === bodyHash) at = old.acceptedAt(older)
      young.put(nonceHash, bodyHash, KINDS[keyKind], body, at)
    },
  }
}
