// A device profile: the matchable values of one look at a device, as numbers in a fixed order, so that comparing two
// profiles is a loop and storing one takes a few dozen bytes.

/** Position of each attribute in `Profile.values`. Stored profiles depend on the order: append only. */
export const VALUE_NAMES = [
  'gpu',
  'model',
  'screen',
  'devicePixelRatio',
  'cores',
  'memory',
  'canvas',
  'audio',
  'fonts',
  'languages',
  'timezone',
  'platformVersion',
  'fontPreferences',
  'preferences',
  'display',
  'screenFrame',
  'voices',
  'webGl',
  'equipment',
  'audioLatency',
  'build',
] as const

export const GPU = 0
export const MODEL = 1
export const SCREEN = 2
export const RATIO = 3
export const CORES = 4
export const MEMORY = 5
export const CANVAS = 6
export const AUDIO = 7
export const FONTS = 8
export const LANGUAGES = 9
export const TIMEZONE = 10
export const PLATFORM_VERSION = 11
export const FONT_PREFERENCES = 12
export const PREFERENCES = 13
export const DISPLAY = 14
export const FRAME = 15
export const VOICES = 16
export const WEBGL = 17
export const EQUIPMENT = 18
export const AUDIO_LATENCY = 19
export const BUILD = 20
/** What builds before knew: the keys join nothing else, and these alone say whether there is a device to look up. */
export const FIRST_VALUES = 12

export interface Profile {
  readonly os: string
  readonly family: string
  readonly major: number | null
  readonly gpuClass: string | null
  /** One number (or hash) per name of VALUE_NAMES; null where the device did not say or is known to make it up. */
  readonly values: readonly (number | null)[]
}

/** Width and height as one number; the larger side first, so that turning a phone changes nothing. */
export const screenCode = (larger: number, smaller: number): number => larger * 100_000 + smaller

/** Whether two screens show the same physical pixels at different scales (`1920 × 1` and `1280 × 1.5`). */
export function samePanel(a: number, ratioA: number, b: number, ratioB: number): boolean {
  const width = Math.floor(a / 100_000) * ratioA - Math.floor(b / 100_000) * ratioB
  const height = (a % 100_000) * ratioA - (b % 100_000) * ratioB
  return Math.abs(width) <= 3 && Math.abs(height) <= 3
}

// Private windows and noise make up pixels and core counts: better to keep the last honest ones.
export const MADE_UP = [CANVAS, AUDIO, CORES]

const NOTHING_TOLD: readonly (number | null)[] = VALUE_NAMES.map(() => null)

/** Of a device that says nothing. Filled in, it keeps its form: a list that begins with numbers is made anew when a null comes. */
export const noValues = (): (number | null)[] => NOTHING_TOLD.slice()
