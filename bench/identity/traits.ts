// What tells devices of one model apart beside their hardware: what people ask of their system, what is plugged in, where bars are.
// All of it is the device's own, in fleets too.

import { hash32 } from '../../src/domain/ids.ts'
import type { Rng } from '../../test/helpers/rng.ts'
import type { Platform } from './hardware.ts'
import type { Rates } from './parameters.ts'

export interface Traits {
  /** Of texts, against what the system comes with. */
  readonly textScale: number
  readonly reducedMotion: boolean
  readonly contrast: boolean
  readonly reducedTransparency: boolean
  readonly forcedColors: boolean
  /** Voices beside those of the system. */
  readonly voicesAdded: number
  /** What the system's bar keeps of the screen: top, right, bottom, left. */
  readonly frame: readonly [number, number, number, number]
  readonly equipment: { readonly audioinput: number; readonly audiooutput: number; readonly videoinput: number }
}

export const SCALES = [0.85, 1.12, 1.24, 1.35]
export const VOICES: Readonly<Record<Platform, number>> = {
  windows: 22,
  mac: 196,
  linux: 19,
  chromeos: 40,
  android: 60,
  ios: 71,
}

const isPhone = (platform: Platform): boolean => platform === 'android' || platform === 'ios'

function frameOf(platform: Platform, rates: Rates, r: Rng): Traits['frame'] {
  if (isPhone(platform)) return [0, 0, 0, 0]
  const isMoved = r.chance(rates['traits.barMoved'])
  if (platform === 'mac') return [30, 0, isMoved ? 10 * r.int(8) : 80, 0]
  if (!isMoved) return [0, 0, platform === 'windows' ? 50 : 30, 0]
  return r.pick([
    [0, 0, 30, 0],
    [0, 0, 70, 0],
    [50, 0, 0, 0],
    [0, 0, 0, 60],
    [0, 0, 0, 0],
  ] as const)
}

export function drawTraits(platform: Platform, rates: Rates, r: Rng): Traits {
  const phone = isPhone(platform)
  const isScaled = r.chance(rates[phone ? 'traits.textScaledPhone' : 'traits.textScaledDesktop'])
  return {
    textScale: isScaled ? r.pick(SCALES) : 1,
    reducedMotion: r.chance(rates['traits.reducedMotion']),
    contrast: r.chance(rates['traits.contrast']),
    reducedTransparency: r.chance(rates['traits.contrast']),
    forcedColors: platform === 'windows' && r.chance(rates['traits.forcedColors']),
    voicesAdded: r.chance(rates['traits.voicesAdded']) ? 1 + r.int(4) : 0,
    frame: frameOf(platform, rates, r),
    equipment: phone
      ? { audioinput: 1, audiooutput: platform === 'ios' ? 0 : 1, videoinput: 1 }
      : { audioinput: r.int(3), audiooutput: 1 + r.int(3), videoinput: r.chance(0.6) ? 1 : 0 },
  }
}

interface Shown {
  readonly platform: Platform
  readonly engine: 'Blink' | 'Gecko' | 'WebKit'
  readonly traits: Traits
  /** A headset or a camera is plugged in, or out. */
  readonly replugged: boolean
  readonly osUpdates: number
  readonly fonts: readonly string[]
}

/** What texts measure by: a number of which parts are widths of letters. */
export const textLook = (platform: Platform, engine: Shown['engine'], fonts: number): number =>
  hash32(`${platform}/${engine}/${isPhone(platform) ? '' : fonts % 3}`)

export const textWidth = (look: number, part: number, scale: number): number =>
  Math.round((120 + ((look >>> part) & 63)) * scale * 10) / 10

/** The components of it, as FingerprintJS 5 writes them. */
export function traitComponents(shown: Shown): Readonly<Record<string, unknown>> {
  const { platform, engine, traits, replugged, osUpdates, fonts } = shown
  const phone = isPhone(platform)
  const look = textLook(platform, engine, fonts.length)
  const width = (n: number) => textWidth(look, n, traits.textScale)
  const { audioinput, audiooutput, videoinput } = traits.equipment
  return {
    fontPreferences: {
      default: width(0),
      apple: width(3),
      serif: width(6),
      sans: width(9),
      mono: width(12),
      min: 9.3,
      system: width(15),
    },
    contrast: traits.contrast ? 1 : 0,
    reducedMotion: traits.reducedMotion,
    reducedTransparency: engine === 'Gecko' ? undefined : traits.reducedTransparency,
    invertedColors: engine === 'WebKit' ? false : undefined,
    forcedColors: engine === 'WebKit' ? undefined : traits.forcedColors,
    monochrome: 0,
    pdfViewerEnabled: !(phone && platform === 'android'),
    screenFrame: traits.frame,
    voices: VOICES[platform] + traits.voicesAdded + (platform === 'ios' || platform === 'mac' ? osUpdates : 0),
    mediaDevices: { audioinput: audioinput + (replugged ? 1 : 0), audiooutput, videoinput },
    audioBaseLatency:
      engine === 'WebKit' ? 128 / 48_000 : platform === 'android' ? 0.003 + (look & 3) / 1_000 : undefined,
  }
}
