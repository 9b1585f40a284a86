// The answers of the last two minutes by nonce, so that a repeat costs neither log nor engine nor history.

import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import type { KeyKind } from '../domain/workspace.ts'

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

interface Entry {
  readonly bodyHash: number
  readonly acceptedAt: number
  public: string | null
  secret: string | null
}

/** Characters of answers in each of two generations: 30,000 answers to browsers. */
const CHARS_MAX = 16_777_216

/** `monotonic`: milliseconds that never jump. */
export function createAnswers(monotonic: () => number, charsMax = CHARS_MAX): Answers {
  let young = new Map<number, Entry>()
  let old = new Map<number, Entry>()
  let chars = 0
  let turnedAt = monotonic()

  function recent(nonceHash: number): Entry | null {
    const entry = young.get(nonceHash) ?? old.get(nonceHash)
    return entry !== undefined && monotonic() - entry.acceptedAt <= NONCE_WINDOW_MS ? entry : null
  }

  return {
    find(nonceHash, keyKind) {
      const entry = recent(nonceHash)
      return entry === null ? null : { bodyHash: entry.bodyHash, body: entry[keyKind] }
    },
    add(nonceHash, bodyHash, keyKind, body, acceptedAt) {
      const now = monotonic()
      if (now - acceptedAt > NONCE_WINDOW_MS) return
      if (chars >= charsMax || now - turnedAt >= NONCE_WINDOW_MS) {
        old = young
        young = new Map()
        chars = 0
        turnedAt = now
      }
      const known = recent(nonceHash)
      const entry = known?.bodyHash === bodyHash ? known : { bodyHash, acceptedAt, public: null, secret: null }
      entry[keyKind] = body
      young.set(nonceHash, entry)
      chars += body.length
    },
  }
}
