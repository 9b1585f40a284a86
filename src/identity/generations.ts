// The generations of a visitor's tokens. One who is recognised without a token gets one of a new generation; when storages of two
// generations turn out to be alive, the later one is on another device.

import type { TokenClaims } from '../domain/identify.ts'

/** What a visitor's record knows of its tokens. */
export interface Generations {
  generation: number
  confirmedGeneration: number
  refutedFrom: number
  refutedTo: number
  generationAt: number
  olderAt: number
  generationChance: number
  generationLasts: boolean
}

/** Tabs that race for the storage are over by then. */
const RACE_MS = 10 * 60_000

/** Whether a token's generation went to a device that turned out to be another one. */
export function isRefuted(state: Generations, generation: number): boolean {
  if (state.refutedFrom > 0 && generation >= state.refutedFrom && generation <= state.refutedTo) return true
  // It was given to somebody without a token, an older one came back since, so that storage was never cleared; and now it
  // comes back itself: two storages are alive.
  return generation === state.generation && state.olderAt > state.generationAt + RACE_MS
}

/**
 * Whether a storage is still there long after another one was given the newest generation. Tabs that race are given theirs in
 * the same minutes, whichever of them stays; or one was open before the storage was cleared, and comes once more.
 */
const outlived = (state: Generations, token: TokenClaims, atMs: number): boolean =>
  token.generation < state.generation &&
  atMs > state.generationAt + RACE_MS &&
  state.generationAt > token.issuedAt + RACE_MS

/** A token came back; changes the given state. */
export function recordReturn(state: Generations, token: TokenClaims, atMs: number): void {
  const isAlone = state.generationLasts && outlived(state, token, atMs)
  if (token.generation < state.confirmedGeneration || isAlone) {
    // The storage this token comes from was never cleared, so later generations live on other devices: either one came back too, or it
    // was given to a storage that lasts.
    state.refutedFrom = token.generation + 1
    state.refutedTo = state.generation
  }
  state.confirmedGeneration = Math.max(state.confirmedGeneration, token.generation)
  if (token.generation < state.generation) state.olderAt = Math.max(state.olderAt, atMs)
}

export interface Issue {
  readonly generation: number
  readonly confidence: number
  /** Whether its browser said that the window is not private: what a private one was given says of no other device. */
  readonly lasts: boolean
}

/** A token of this generation is given out with an answer that is so sure; changes the given state. */
export function recordIssue(state: Generations, { generation, confidence, lasts }: Issue, atMs: number): void {
  if (generation <= state.generation) return
  state.generation = generation
  state.generationAt = atMs
  state.generationChance = confidence
  state.generationLasts = lasts
  state.olderAt = 0
}

/**
 * How likely a token is still with the device it was given to first. One that was given out with a guess proves no more than
 * that guess, until the storage before it could have come back: devices return once in `gapMs` on average.
 */
export function tokenChance(state: Generations, token: TokenClaims, atMs: number, gapMs: number): number {
  if (token.generation < state.generation) return 1
  const doubt = 1 - state.generationChance
  return 1 - doubt * Math.exp(-Math.max(0, atMs - state.generationAt) / gapMs)
}
