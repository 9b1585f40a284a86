// How rare the values are that no match key counts: which ones are frequent among devices of one system and browser, and how much
// oftener two devices agree in them that look alike otherwise.

import { FIRST_VALUES, type Profile, VALUE_NAMES } from './profile.ts'

/** The values of a profile that this is about: its last ones. */
export const TRAITS = VALUE_NAMES.length - FIRST_VALUES
/** Values counted of each; the rarest makes room for another. */
const VALUES_KEPT = 8
/** Of each: [devices, then code and count of values], and [agreed, compared] of two devices that look alike. */
const STRIDE = 1 + 2 * VALUES_KEPT
const PAIRS_AT = TRAITS * STRIDE
/** Above this many devices, old ones count half. */
const DEVICES_MAX = 2_000
/** What is assumed weighs, in devices and in pairs. */
const DEVICES_PRIOR = 4
const PAIRS_PRIOR = 6
/** However rare a value seems, and however common. */
const SHARE_MIN = 0.02
const SHARE_MAX = 0.98

export const newRarity = (): number[] => new Array<number>(PAIRS_AT + 2 * TRAITS).fill(0)

/** 16 bits for a value, never 0; 0 for one that is not known. */
export function traitCode(value: number | null | undefined): number {
  if (value == null) return 0
  const low = Math.imul((value % 4_294_967_296) | 0, 2654435761)
  const mixed = Math.imul(low ^ (Math.floor(value / 4_294_967_296) | 0) ^ Math.round((value % 1) * 1e6), 1597334677)
  return 1 + (((mixed >>> 16) ^ low) & 0xfffe)
}

export function traitsOf({ values }: Profile): number[] {
  const traits: number[] = new Array(TRAITS)
  for (let i = 0; i < TRAITS; i++) traits[i] = traitCode(values[FIRST_VALUES + i])
  return traits
}

/** One more device with these values. CHANGES what is given. */
export function learnTraits(rarity: number[], traits: readonly number[]): void {
  for (let trait = 0; trait < TRAITS; trait++) {
    const code = traits[trait] ?? 0
    if (code === 0) continue
    const at = trait * STRIDE
    let place = at + 1
    for (let i = at + 1; i < at + STRIDE; i += 2) {
      if (rarity[i] === code) {
        place = i
        break
      }
      if ((rarity[i + 1] as number) < (rarity[place + 1] as number)) place = i
    }
    rarity[place + 1] = rarity[place] === code ? (rarity[place + 1] as number) + 1 : 1
    rarity[place] = code
    rarity[at] = (rarity[at] as number) + 1
    if ((rarity[at] as number) <= DEVICES_MAX) continue
    rarity[at] = (rarity[at] as number) >> 1
    for (let i = at + 2; i < at + STRIDE; i += 2) rarity[i] = (rarity[i] as number) >> 1
  }
}

/** Two devices that look alike, proven to be two, have these values equal of those that both told (bits). CHANGES what is given. */
export function learnStrangers(rarity: number[], equal: number, compared: number): void {
  for (let trait = 0; trait < TRAITS; trait++) {
    if (((compared >> trait) & 1) === 0) continue
    const at = PAIRS_AT + 2 * trait
    rarity[at + 1] = (rarity[at + 1] as number) + 1
    if (((equal >> trait) & 1) === 1) rarity[at] = (rarity[at] as number) + 1
    if ((rarity[at + 1] as number) <= DEVICES_MAX) continue
    rarity[at] = (rarity[at] as number) >> 1
    rarity[at + 1] = (rarity[at + 1] as number) >> 1
  }
}

/**
 * Chance that another device that looks alike has this value too: θ + (1 − θ)·p with p its share of all devices and θ how much
 * oftener than by these shares two such devices agree (Balding and Nichols 1994, for profiles of people of one origin). `assumed`: the
 * chance that they agree in any value, until traffic tells.
 */
export function sharing(rarity: readonly number[], trait: number, code: number, assumed: number): number {
  const at = trait * STRIDE
  const devices = (rarity[at] as number) + DEVICES_PRIOR
  let own = -1
  let least = Number.POSITIVE_INFINITY
  let squares = 0
  let rest = devices - DEVICES_PRIOR
  for (let i = at + 1; i < at + STRIDE; i += 2) {
    const count = rarity[i + 1] as number
    if (count > 0 && rarity[i] === code) own = count
    least = Math.min(least, count)
    squares += (count / devices) ** 2
    rest -= count
  }
  // One that is not counted is no more frequent than the rarest that is, nor than all of those together.
  const count = own >= 0 ? own : Math.min(least, Math.max(0, rest))
  const share = (count + DEVICES_PRIOR * assumed) / devices
  squares += (DEVICES_PRIOR / devices) * assumed
  const pairs = PAIRS_AT + 2 * trait
  const agreeing = ((rarity[pairs] as number) + PAIRS_PRIOR * assumed) / ((rarity[pairs + 1] as number) + PAIRS_PRIOR)
  const theta = squares >= 1 ? 0 : Math.min(1, Math.max(0, (agreeing - squares) / (1 - squares)))
  return Math.min(SHARE_MAX, Math.max(SHARE_MIN, theta + (1 - theta) * share))
}
