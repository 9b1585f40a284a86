// What a page can read of a device beside its hardware: what its user chose, what is plugged in, what the browser came with.
// Each is a number to compare; null where it was not told or is known to be made up.

import type { IdentifyBody } from '../domain/identify.ts'
import { hash53 } from '../domain/ids.ts'
import {
  AUDIO_LATENCY,
  BUILD,
  DISPLAY,
  EQUIPMENT,
  FONT_PREFERENCES,
  FRAME,
  PREFERENCES,
  VOICES,
  WEBGL,
} from './profile.ts'
import { componentOf, flagOf, numberOf, objectOf, textOf, wholeOf } from './read.ts'

type Components = IdentifyBody['components']

const FONT_STYLES = ['default', 'apple', 'serif', 'sans', 'mono', 'min', 'system'] as const
/** Widths differ by rounding from one reading to the next. */
const WIDTH_STEP_PX = 0.5

const scratch = new Int32Array(16)

/** 32 bits of the first `count` numbers of the scratch. */
function hashScratch(count: number): number {
  let hash = count
  for (let i = 0; i < count; i++) {
    hash = Math.imul(hash ^ (scratch[i] as number), 2654435761)
    hash ^= hash >>> 15
  }
  return hash >>> 0
}

/** How wide texts are in the fonts and sizes that reader and system chose. */
function fontPreferencesOf(value: unknown): number | null {
  const widths = objectOf(value)
  if (widths === null) return null
  let told = 0
  for (let i = 0; i < FONT_STYLES.length; i++) {
    const width = numberOf(widths[FONT_STYLES[i] as string], 0, 1e5)
    scratch[i] = width === null ? -1 : Math.round(width / WIDTH_STEP_PX)
    if (width !== null) told++
  }
  return told === 0 ? null : hashScratch(FONT_STYLES.length)
}

const FLAGS = ['reducedMotion', 'reducedTransparency', 'invertedColors', 'forcedColors'] as const

/** What a user asked the system for, to see or bear it better. */
function preferencesOf(components: Components): number | null {
  const contrast = wholeOf(componentOf(components, 'contrast'), -10, 10)
  const monochrome = wholeOf(componentOf(components, 'monochrome'), 0, 64)
  let told = contrast === null && monochrome === null ? 0 : 1
  // Never 0 for a flag that is told, so that "not told" and "no" differ.
  let code = (contrast === null ? 0 : contrast + 11) * 100 + (monochrome === null ? 0 : monochrome + 1)
  for (const name of FLAGS) {
    const flag = flagOf(componentOf(components, name))
    if (flag !== null) told++
    code = code * 3 + (flag === null ? 0 : flag ? 2 : 1)
  }
  return told === 0 ? null : code
}

const GAMUTS = ['srgb', 'p3', 'rec2020']

/** What the screen can show. */
function displayOf(components: Components): number | null {
  const gamut = textOf(componentOf(components, 'colorGamut'), 16)
  const hdr = flagOf(componentOf(components, 'hdr'))
  const depth = wholeOf(componentOf(components, 'colorDepth'), 1, 128)
  if (gamut === null && hdr === null && depth === null) return null
  return ((gamut === null ? 0 : GAMUTS.indexOf(gamut) + 2) * 3 + (hdr === null ? 0 : hdr ? 2 : 1)) * 129 + (depth ?? 0)
}

/** What the system keeps of the screen: where its bar is, and how large. */
function frameOf(value: unknown): number | null {
  if (!Array.isArray(value) || value.length !== 4) return null
  for (let side = 0; side < 4; side++) {
    const kept = numberOf(value[side], -65_535, 65_535)
    if (kept === null) return null
    scratch[side] = Math.round(kept)
  }
  return hashScratch(4)
}

function webGlOf(value: unknown): number | null {
  const read = objectOf(value)
  const parameters = textOf(read?.parametersHash, 64)
  if (parameters === null) return null
  return hash53(parameters, Array.isArray(read?.extensions) ? read.extensions.length : 0)
}

const DEVICE_KINDS = ['audioinput', 'audiooutput', 'videoinput'] as const

function equipmentOf(value: unknown): number | null {
  const counts = objectOf(value)
  if (counts === null) return null
  let code = 0
  for (const kind of DEVICE_KINDS) {
    const count = wholeOf(counts[kind], 0, 99)
    if (count === null) return null
    code = code * 100 + count
  }
  return code
}

/** Locale of dates, number of plugins, and whether the browser shows PDFs. */
function buildOf(components: Components): number | null {
  const locale = textOf(componentOf(components, 'dateTimeLocale'), 35)
  const plugins = componentOf(components, 'plugins')
  const shows = flagOf(componentOf(components, 'pdfViewerEnabled'))
  if (locale === null && !Array.isArray(plugins) && shows === null) return null
  return hash53(
    locale ?? '',
    (Array.isArray(plugins) ? Math.min(plugins.length, 999) : 1_000) * 3 + (shows === null ? 0 : shows ? 2 : 1),
  )
}

/** Puts the traits among a profile's values. `isNoisy`: the browser makes up what it can. */
export function putTraits(values: (number | null)[], components: Components, isNoisy: boolean): void {
  values[FONT_PREFERENCES] = fontPreferencesOf(componentOf(components, 'fontPreferences'))
  values[PREFERENCES] = preferencesOf(components)
  values[DISPLAY] = displayOf(components)
  if (isNoisy) return
  values[FRAME] = frameOf(componentOf(components, 'screenFrame'))
  // None may mean that they were not loaded in time.
  values[VOICES] = wholeOf(componentOf(components, 'voices'), 1, 100_000)
  values[WEBGL] = webGlOf(componentOf(components, 'webGlExtensions'))
  values[EQUIPMENT] = equipmentOf(componentOf(components, 'mediaDevices'))
  values[AUDIO_LATENCY] = numberOf(componentOf(components, 'audioBaseLatency'), 0, 60)
  values[BUILD] = buildOf(components)
}
