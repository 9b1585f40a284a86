// Counts of pairs of values as they are stored: those of values that builds before knew first, so that their counts go on.

import { FIRST_VALUES, VALUE_NAMES } from './profile.ts'

/** Of the pairs those of values that builds before knew, and those of the others, each by age. */
export function splitPairs(pairs: readonly number[]): { readonly first: number[]; readonly later: number[] } {
  const [first, later]: [number[], number[]] = [[], []]
  for (let i = 0; i < pairs.length; i++) {
    const list = i % (VALUE_NAMES.length * 2) < FIRST_VALUES * 2 ? first : later
    list.push(pairs[i] as number)
  }
  return { first, later }
}

/** CHANGES the pairs. */
export function joinPairs(pairs: number[], first: readonly number[], later: readonly number[]): void {
  let [a, b] = [0, 0]
  for (let i = 0; i < pairs.length; i++) {
    pairs[i] = (i % (VALUE_NAMES.length * 2) < FIRST_VALUES * 2 ? first[a++] : later[b++]) as number
  }
}
