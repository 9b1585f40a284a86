// What it is worth when two looks at a device agree or differ, attribute by attribute: the one table of the matcher.
// m = chance that two visits of one device agree; q = chance that two devices of the same system and browser do.

import type { Attributes } from './attributes.ts'
import {
  AUDIO,
  CANVAS,
  CORES,
  FONTS,
  GPU,
  LANGUAGES,
  MEMORY,
  MODEL,
  RATIO,
  SCREEN,
  screenCode,
  VALUE_NAMES,
} from './profile.ts'

interface Weight {
  readonly m: number
  readonly q: number
  readonly source: string
}

// Entropies: H = Laperdrix et al. 2018 ("Hiding in the Crowd", Table 3, desktop), F = the fingerprint network of
// Apify's fingerprint-generator 2.1.88, given the User-Agent. q is far above 2^-bits: popular values collide more often than
// the average bit tells, and each attribute is taken given the ones before it (a laptop model fixes chip, cores, screen).
// m: consecutive visits in simulated populations with the change rates of FP-Stalker (2018), Table II.
const WEIGHTS: Readonly<Record<(typeof VALUE_NAMES)[number], Weight>> = {
  gpu: { m: 0.995, q: 0.03, source: 'H 5.28 bits, F 7.14 (Windows)' },
  model: { m: 0.999, q: 0.05, source: 'F 6.21 bits (Android), given the GPU' },
  screen: { m: 0.9, q: 0.15, source: 'H 4.44 bits, given GPU and cores' },
  devicePixelRatio: { m: 0.88, q: 0.75, source: 'given the screen; zoom on 3 % of visits' },
  cores: { m: 0.995, q: 0.4, source: 'F 3.14 bits, given the GPU' },
  memory: { m: 0.998, q: 0.65, source: 'F 1.82 bits, given GPU and cores' },
  canvas: { m: 0.95, q: 0.4, source: 'H 8.04 bits, given browser, version and GPU' },
  audio: { m: 0.97, q: 0.7, source: 'follows browser, system and architecture' },
  fonts: { m: 0.98, q: 0.08, source: 'H 6.97 bits, F 5.66, given the system' },
  languages: { m: 0.995, q: 0.2, source: 'H 2.56 bits' },
  timezone: { m: 0.97, q: 0.6, source: 'given the language; 0.16 bits within one country (H)' },
  platformVersion: { m: 0.96, q: 0.3, source: 'F 3.12 bits, given system and hardware' },
}

/** Chance of agreement for values that so many devices share that they say little. */
const Q_COMMON = { gpu: 0.6, screen: 0.28, fonts: 0.5, languages: 0.4 } as const
const COMMON_SCREENS = new Set([screenCode(1920, 1080), screenCode(1366, 768), screenCode(1536, 864)])

// A phone's model fixes all hardware: once it agrees, the rest adds little. iPhones are alike but for screen and language.
const Q_PHONE: Readonly<Record<number, number>> = {
  [GPU]: 0.08,
  [SCREEN]: 0.5,
  [CORES]: 0.85,
  [MEMORY]: 0.85,
  [CANVAS]: 0.7,
  [FONTS]: 0.8,
}
const Q_APPLE_PHONE: Readonly<Record<number, number>> = {
  [GPU]: 0.98,
  [MODEL]: 0.1,
  [SCREEN]: 0.15,
  [RATIO]: 0.95,
  [CORES]: 0.95,
  [CANVAS]: 0.8,
  [AUDIO]: 0.95,
  [FONTS]: 0.95,
}

/** Logarithms of the likelihood ratios of one observation, by position of the profile's values. */
export interface Ratios {
  readonly agree: readonly number[]
  readonly differ: readonly number[]
}

const ALL = VALUE_NAMES.map((name) => WEIGHTS[name])

function ratiosOf(
  q: (position: number, weight: Weight) => number,
  m: (position: number, weight: Weight) => number,
): Ratios {
  const agree: number[] = []
  const differ: number[] = []
  ALL.forEach((weight, i) => {
    agree.push(Math.log(m(i, weight) / q(i, weight)))
    differ.push(Math.log((1 - m(i, weight)) / (1 - q(i, weight))))
  })
  return { agree, differ }
}

const usual = (_: number, weight: Weight): number => weight.m
// Firefox reports other core counts in private windows and under its fingerprinting protection.
const gecko = (i: number, weight: Weight): number => (i === CORES ? 0.5 : weight.m)

const DESKTOP = ratiosOf((_, weight) => weight.q, usual)
const DESKTOP_GECKO = ratiosOf((i, weight) => (i === CORES ? 0.45 : weight.q), gecko)
const PHONE = ratiosOf((i, weight) => Q_PHONE[i] ?? weight.q, usual)
const APPLE_PHONE = ratiosOf((i, weight) => Q_APPLE_PHONE[i] ?? weight.q, usual)

const COMMON = {
  gpu: Math.log(WEIGHTS.gpu.m / Q_COMMON.gpu),
  screen: Math.log(WEIGHTS.screen.m / Q_COMMON.screen),
  fonts: Math.log(WEIGHTS.fonts.m / Q_COMMON.fonts),
  languages: Math.log(WEIGHTS.languages.m / Q_COMMON.languages),
}

const sayingLittle = new Set(['software', 'masked', 'virtual', 'apple'])

/** The ratios for one observation: by kind of device, with popular values worth less. */
export function ratiosFor(attributes: Attributes): Ratios {
  const { os, gpu, languages } = attributes
  if (os === 'iOS') return APPLE_PHONE
  const base = os === 'Android' ? PHONE : attributes.ua.engine === 'Gecko' ? DESKTOP_GECKO : DESKTOP
  const screen = attributes.profile.values[SCREEN]
  const agree = base.agree.slice()
  if (gpu !== null && sayingLittle.has(gpu.class)) agree[GPU] = Math.min(agree[GPU] as number, COMMON.gpu)
  if (screen !== null && screen !== undefined && COMMON_SCREENS.has(screen)) {
    agree[SCREEN] = Math.min(agree[SCREEN] as number, COMMON.screen)
  }
  if (attributes.fontCount !== null && attributes.fontCount < 3) {
    agree[FONTS] = Math.min(agree[FONTS] as number, COMMON.fonts)
  }
  if (languages[0] === 'en-US') agree[LANGUAGES] = Math.min(agree[LANGUAGES] as number, COMMON.languages)
  return { agree, differ: base.differ }
}

/** Text drawn at another display scale differs by itself: then another canvas says next to nothing. */
export const CANVAS_RESCALED = Math.log(0.6 / 0.75)

const DAY_MS = 86_400_000

/**
 * Networks. Visits of one device agree in address with .54 and in network only with .14 (simulated households, offices
 * and mobile carriers). Two devices of one workspace share an address with about 3 in 10,000, a network with 3 in 1,000.
 */
export const NETWORK = {
  sameIp: Math.log(0.54 / 0.0003),
  sameSubnet: Math.log(0.14 / 0.003),
  other: Math.log(0.32),
  /** Addresses are handed on: agreement loses half its worth in this time. */
  halfLifeMs: 30 * DAY_MS,
} as const

/** Browser versions: equal, forward as fast as releases come, faster, backward. Releases every 28 days. */
export const VERSION = {
  equal: Math.log(0.86 / 0.35),
  forward: Math.log(0.13 / 0.3),
  tooFar: -3,
  backward: -6,
  releaseMs: 28 * DAY_MS,
  slackMajors: 2,
} as const

/** A visitor not seen for 90 days is e times less likely to return than one seen now. */
export const AGE_SCALE_MS = 90 * DAY_MS

/** Log odds, before any evidence, that a given one of about 10,000 visitors stands behind a visit without token. */
export const PRIOR = Math.log(1 / 10_000)

/** Share of a match's weight that belongs to a look-alike in the same home or office that was never seen. */
export const CLONE_SHARE = 0.01
