// What it is worth when two looks at a device agree or differ, attribute by attribute: the one table of the matcher.
// m = chance that two visits of one device agree; q = chance that two devices of the same system and browser do.

import type { Attributes } from './attributes.ts'
import {
  AUDIO,
  AUDIO_LATENCY,
  BUILD,
  CANVAS,
  CORES,
  DISPLAY,
  EQUIPMENT,
  FONTS,
  FRAME,
  GPU,
  LANGUAGES,
  MEMORY,
  MODEL,
  RATIO,
  SCREEN,
  screenCode,
  TIMEZONE,
  VALUE_NAMES,
  VOICES,
  WEBGL,
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
  // The rest is assumed, given everything above; traffic teaches how it keeps.
  fontPreferences: { m: 0.98, q: 0.7, source: 'follows system, fonts and the size of text a user chose' },
  preferences: { m: 0.985, q: 0.85, source: 'most ask for nothing' },
  display: { m: 0.97, q: 0.8, source: 'given the screen' },
  screenFrame: { m: 0.93, q: 0.5, source: 'bars lie mostly where the system puts them' },
  voices: { m: 0.93, q: 0.6, source: 'follows system, version and languages' },
  webGl: { m: 0.93, q: 0.85, source: 'given GPU, driver and version' },
  equipment: { m: 0.88, q: 0.5, source: 'headsets and cameras come and go' },
  audioLatency: { m: 0.95, q: 0.8, source: 'given hardware and system' },
  build: { m: 0.98, q: 0.9, source: 'given languages and browser' },
}

const COMMON_SCREENS = new Set([screenCode(1920, 1080), screenCode(1366, 768), screenCode(1536, 864)])
const SAYING_LITTLE = new Set(['software', 'masked', 'virtual', 'apple'])

interface CommonValue {
  readonly position: number
  readonly q: number
  readonly isIn: (attributes: Attributes) => boolean
}

/** Values that so many devices share that they say little, with their chance of agreement. */
const COMMON: readonly CommonValue[] = [
  { position: GPU, q: 0.6, isIn: ({ gpu }) => gpu !== null && SAYING_LITTLE.has(gpu.class) },
  { position: SCREEN, q: 0.28, isIn: ({ profile }) => COMMON_SCREENS.has(profile.values[SCREEN] ?? 0) },
  { position: FONTS, q: 0.5, isIn: ({ fontCount }) => fontCount !== null && fontCount < 3 },
  { position: LANGUAGES, q: 0.4, isIn: ({ languages }) => languages[0] === 'en-US' },
]

// Nobody moves a phone's bars or plugs much into it.
const Q_PHONE_TRAITS: Readonly<Record<number, number>> = {
  [DISPLAY]: 0.97,
  [FRAME]: 0.97,
  [VOICES]: 0.8,
  [WEBGL]: 0.95,
  [EQUIPMENT]: 0.85,
  [AUDIO_LATENCY]: 0.9,
  [BUILD]: 0.95,
}

// A phone's model fixes all hardware: once it agrees, the rest adds little. iPhones are alike but for screen and language.
const Q_PHONE: Readonly<Record<number, number>> = {
  [GPU]: 0.08,
  [SCREEN]: 0.5,
  [CORES]: 0.85,
  [MEMORY]: 0.85,
  [CANVAS]: 0.7,
  [FONTS]: 0.8,
  ...Q_PHONE_TRAITS,
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
  ...Q_PHONE_TRAITS,
}

/** How a visit's network relates to those a visitor was seen at: an address, only the network around it, none, none but of one provider. */
export type NetworkMatch = 0 | 1 | 2 | 3
export const SAME_ADDRESS = 0
export const SAME_NETWORK = 1
export const ELSEWHERE = 2
/** Last, since lessons of builds before know the others by their numbers. */
export const SAME_PROVIDER = 3
export const NETWORK_MATCHES = [SAME_ADDRESS, SAME_NETWORK, ELSEWHERE, SAME_PROVIDER] as const

/** Who shares an address mostly shares language and clock; who shares a network at least the clock (assumed). */
const TOGETHER: Readonly<Record<NetworkMatch, { readonly languages: number; readonly timezone: number }>> = {
  0: { languages: 0.85, timezone: 0.97 },
  1: { languages: 0.6, timezone: 0.95 },
  2: { languages: 0, timezone: 0 },
  3: { languages: 0.6, timezone: 0.9 },
}

/** Chances of one observation, by position of the profile's values. */
export interface Chances {
  readonly m: readonly number[]
  /** log(1 - q). */
  readonly unlike: readonly number[]
  /** Log of the chance that another device agrees, by where that one is: those in one place speak alike. */
  readonly alike: readonly (readonly number[])[]
}

const ALL = VALUE_NAMES.map((name) => WEIGHTS[name])
const VALUE_PRIORS: readonly number[] = ALL.map(({ m }) => m)

/** One for every set of values that are common, by its bits in COMMON: logs are costly where every visit is compared. */
function chancesOf(special: Readonly<Record<number, number>>, m: readonly number[] = VALUE_PRIORS): readonly Chances[] {
  return Array.from({ length: 1 << COMMON.length }, (_, common) => {
    const q = ALL.map((weight, i) => special[i] ?? weight.q)
    COMMON.forEach(({ position, q: least }, bit) => {
      if ((common >> bit) & 1) q[position] = Math.max(q[position] as number, least)
    })
    const alike = NETWORK_MATCHES.map((match) => {
      const { languages, timezone } = TOGETHER[match]
      return q.map((chance, i) =>
        Math.log(Math.max(chance, i === LANGUAGES ? languages : i === TIMEZONE ? timezone : 0)),
      )
    })
    return { m, unlike: q.map((chance) => Math.log(1 - chance)), alike }
  })
}

const DESKTOP = chancesOf({})
// Firefox reports other core counts in private windows and under its fingerprinting protection.
const DESKTOP_GECKO = chancesOf(
  { [CORES]: 0.45 },
  VALUE_PRIORS.map((m, i) => (i === CORES ? 0.5 : m)),
)
// WebKit names no graphics card, hides installed fonts and rounds cores (its tracking prevention says so).
const Q_APPLE_DESKTOP: Readonly<Record<number, number>> = {
  [GPU]: 0.95,
  [CORES]: 0.9,
  [FONTS]: 0.9,
  [AUDIO]: 0.95,
  [CANVAS]: 0.8,
}
const APPLE_DESKTOP = chancesOf(Q_APPLE_DESKTOP)
// Nobody docks a phone: its screen is another one when it is folded, or shown larger by a setting.
const phoneValues = (screen: number): number[] => VALUE_PRIORS.map((m, i) => (i === SCREEN ? screen : m))
const PHONE = chancesOf(Q_PHONE, phoneValues(0.985))
const APPLE_PHONE = chancesOf(Q_APPLE_PHONE, phoneValues(0.997))

/** Chances for one observation: by kind of device, with popular values worth less. */
export function chancesFor(attributes: Attributes): Chances {
  const { os, ua } = attributes
  if (os === 'iOS') return APPLE_PHONE[0] as Chances
  const desktop = ua.engine === 'Gecko' ? DESKTOP_GECKO : ua.engine === 'WebKit' ? APPLE_DESKTOP : DESKTOP
  let common = 0
  for (let bit = 0; bit < COMMON.length; bit++) if (COMMON[bit]?.isIn(attributes)) common |= 1 << bit
  return (os === 'Android' ? PHONE : desktop)[common] as Chances
}

/** Text drawn at another display scale differs by itself: then another canvas says next to nothing. */
export const CANVAS_RESCALED = Math.log(0.6 / 0.75)

/** Two devices of one system and browser have one provider with 5 in 100, where counts do not say (assumed). */
export const SHARED_PROVIDER = 0.05

/** By how near: consecutive visits in simulated households, offices and mobile carriers, until traffic says better. */
export const NETWORK_PRIOR = [0.54, 0.14, 0.32] as const

/** Of visits from no known network those of a known provider (assumed until traffic tells). */
export const PROVIDER_PRIOR = 0.3

/** Two devices of one system and browser share a /24 or /48 with 3 in 1,000 (simulated), where counts do not say. */
export const SHARED_NETWORK = 0.003

/**
 * Devices assumed of one system and browser besides those already seen: how many there are to confuse one with before any
 * are known. Those seen are added, and take its place: odds of a return are those of the visitors known, so it is among
 * them that a look is rare.
 */
export const DEVICES_ASSUMED = 1_000
/** What that weighs, in visitors. */
export const DEVICES_VISITORS = 40

/**
 * Devices still unseen that look like one whose look only it has, until traffic tells (Good and Turing: twice the looks of two
 * devices over those of one). Gómez-Boix et al. found 36 % of desktops and 19 % of phones unique among two million,
 * Andriamilanto et al. 88 and 40 % among four: a tenth and a third lie between.
 */
export const LOOKALIKES_DESKTOP = 0.1
export const LOOKALIKES_PHONE = 0.3

/** How much likelier a clone of a visitor is once two of its storages were seen alive (assumed). */
export const CLONED_BEFORE = 12

/** Devices at an address or network besides those seen there (Krichevsky and Trofimov's half). */
export const OTHERS_UNSEEN = 0.5

/** Shares of a returning device's visits that lost their token, and of those in private windows (simulated: .14, .07). */
export const LOSS_ASSUMED = 0.15
export const PRIVATE_ASSUMED = 0.06

/**
 * Share of devices with a look-alike at the same address: another profile of the browser, another machine of the model (assumed
 * until tokens show it).
 */
export const TWINS_ASSUMED = 0.05
/** Of a visit that looks like a visitor with such a look-alike, how often it is the look-alike's first (assumed). */
export const TWIN_UNSEEN = 0.5
