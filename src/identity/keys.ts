// The keys a visitor is found by when it brings no token: one for the exact profile, and others that each survive other changes.

import { hash32, hash53, hash53Of } from '../domain/ids.ts'
import type { Native } from '../domain/native.ts'
import { partsOf } from './address.ts'
import type { Attributes } from './attributes.ts'
import { nativeIdOf } from './native-id.ts'
import {
  AUDIO,
  CANVAS,
  CORES,
  FIRST_VALUES,
  FONTS,
  GPU,
  LANGUAGES,
  MEMORY,
  MODEL,
  type Profile,
  RATIO,
  SCREEN,
  TIMEZONE,
} from './profile.ts'
import type { Engine } from './user-agent.ts'

/** What the keys are made of. */
export interface Looked extends Pick<Attributes, 'profile'> {
  readonly ua: Pick<Attributes['ua'], 'engine'>
}

/** Fewer known values than this identify a kind of client, not a device. */
const VALUES_MIN = 5

/** Whether so few of the values that say what a device is are known that nobody can be recognised by them. */
export function isSparse(profile: Profile): boolean {
  let known = 0
  for (let i = 0; i < FIRST_VALUES; i++) if ((profile.values[i] ?? null) !== null) known++
  return known < VALUES_MIN
}

/** Codes of the digits of base 32. */
const DIGITS = Uint8Array.from('0123456789abcdefghijklmnopqrstuv', (digit) => digit.charCodeAt(0))

const double = new Float64Array(1)
const words = new Uint32Array(double.buffer)
const UNKNOWN = -1

const [A, B, C, D, E, F] = [97, 98, 99, 100, 101, 102]

/** One letter, as its code, and twelve digits from a seed and the profile's values at some positions. */
function keyOf(letter: number, seed: number, values: Profile['values'], positions: readonly number[]): string {
  double[0] = seed
  let a = (words[0] as number) ^ 0x9e3779b9
  let b = (words[1] as number) ^ 0x85ebca6b
  for (const position of positions) {
    double[0] = values[position] ?? UNKNOWN
    a = Math.imul(a ^ (words[0] as number), 2654435761)
    b = Math.imul(b ^ (words[1] as number) ^ (a >>> 15), 1597334677)
    a ^= b >>> 13
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  // At once: a text put together of pieces leaves all of them behind.
  return String.fromCharCode(
    letter,
    DIGITS[(a >>> 5) & 31] as number,
    DIGITS[a & 31] as number,
    DIGITS[(a >>> 15) & 31] as number,
    DIGITS[(a >>> 10) & 31] as number,
    DIGITS[(a >>> 25) & 31] as number,
    DIGITS[(a >>> 20) & 31] as number,
    DIGITS[(b >>> 5) & 31] as number,
    DIGITS[b & 31] as number,
    DIGITS[(b >>> 15) & 31] as number,
    DIGITS[(b >>> 10) & 31] as number,
    DIGITS[(b >>> 25) & 31] as number,
    DIGITS[(b >>> 20) & 31] as number,
  )
}

const NO_POSITIONS: readonly number[] = []
const LOOKS = [GPU, MODEL, SCREEN, FONTS, LANGUAGES]
const HARDWARE = [GPU, MODEL, CORES, MEMORY]
const HARDWARE_GECKO = [GPU, MODEL]
/** Where hardware says nothing: what stays of WebKit's devices. */
const HARDWARE_APPLE = [MODEL, SCREEN, LANGUAGES]
const DRAWN = [CANVAS, AUDIO, FONTS, LANGUAGES, TIMEZONE]
const RENDERED = [...HARDWARE, ...DRAWN]
const RENDERED_GECKO = [...HARDWARE_GECKO, ...DRAWN]
const EVERYTHING = [...RENDERED, SCREEN, RATIO]
const EVERYTHING_GECKO = [...RENDERED_GECKO, SCREEN, RATIO]

/** The positions of the profile that each key joins; all of them equal means found under one key. */
export function jointPositions(letter: 'a' | 'b' | 'd' | 'e' | 'f', engine: Engine): readonly number[] {
  const gecko = engine === 'Gecko'
  if (letter === 'a') return LOOKS
  if (letter === 'f' && engine === 'WebKit') return HARDWARE_APPLE
  if (letter === 'b' || letter === 'f') return gecko ? HARDWARE_GECKO : HARDWARE
  if (letter === 'd') return gecko ? RENDERED_GECKO : RENDERED
  return gecko ? EVERYTHING_GECKO : EVERYTHING
}

/**
 * Keys without workspace or environment, at most six; one whose parts are all unknown is left out. First that of the exact profile, `e`,
 * unless that says too little to look anyone up by it. It leaves out the browser version (88 % of return visits are equal
 * without it), and on Firefox the core count, which it changes in private windows. `ip` is canonical, `provider` as providerOf
 * tells it.
 */
export function matchKeys({ profile, ua }: Looked, ip: string, provider: number): readonly string[] {
  const { values } = profile
  const gecko = ua.engine === 'Gecko'
  const seed = hash53Of(profile.os, '|', profile.family)
  const { line, subnet } = partsOf(ip)
  const hardware = values[GPU] !== null || values[MODEL] !== null
  const isDrawn = values[CANVAS] !== null || values[AUDIO] !== null || values[FONTS] !== null
  return known(
    isSparse(profile) ? null : keyOf(E, seed, values, gecko ? EVERYTHING_GECKO : EVERYTHING),
    hardware || values[FONTS] !== null ? keyOf(A, seed, values, LOOKS) : null,
    hardware || values[CORES] !== null
      ? keyOf(B, hash53(subnet, seed | 0), values, gecko ? HARDWARE_GECKO : HARDWARE)
      : null,
    keyOf(C, hash53(line, seed | 0), values, NO_POSITIONS),
    isDrawn ? keyOf(D, seed, values, gecko ? RENDERED_GECKO : RENDERED) : null,
    hardware || values[SCREEN] !== null
      ? keyOf(F, hash53(String(provider), seed | 0), values, jointPositions('f', ua.engine))
      : null,
  )
}

/** Those there are: mostly all, whose list need not grow. */
function known(
  e: string | null,
  a: string | null,
  b: string | null,
  c: string,
  d: string | null,
  f: string | null,
): readonly string[] {
  if (e !== null && a !== null && b !== null && d !== null && f !== null) return [e, a, b, c, d, f]
  return [e, a, b, c, d, f].filter((key) => key !== null)
}

const NATIVE_LETTERS = { vendor: 'v', installation: 'i' } as const

/**
 * The key of the id an app sends, which leads to its visitor whatever its looks; null without one. Those of builds that did not
 * tell the kinds apart begin with n, and nothing asks for them any more.
 */
export function nativeKeyOf(native: Native | null | undefined): string | null {
  const id = nativeIdOf(native)
  if (id === null) return null
  return `${NATIVE_LETTERS[id.kind]}${hash53(id.text).toString(36)}${hash32(id.text).toString(36)}`
}
