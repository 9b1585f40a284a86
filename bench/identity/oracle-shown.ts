// What a visit shows, read back into the terms it was drawn in: nothing but body, headers and address is looked at.

import type { Sent } from './body.ts'
import type { Browser } from './devices.ts'
import { componentIn } from './exact-hash.ts'
import type { Platform } from './hardware.ts'
import { SCALES, textLook, textWidth, VOICES } from './traits.ts'
import type { Screen } from './values.ts'

export type Engine = 'Blink' | 'Gecko' | 'WebKit'

export interface Shown {
  readonly platform: Platform
  readonly browser: Browser
  readonly engine: Engine
  readonly resists: boolean
  readonly isPrivate: boolean
  /** As `Moment.version` counts. */
  readonly version: number
  /** All of the hardware that is told and neither changes nor is made up, as one text. */
  readonly hardware: string
  /** The system's version where hints tell it. */
  readonly build: string | null
  /** The ratio is the screen's times the zoom; null where the window poses as the screen. */
  readonly screen: Screen | null
  /** The window that poses as the screen. */
  readonly window: string | null
  readonly canvas: string
  /** The canvas is drawn anew in every session. */
  readonly isNoise: boolean
  readonly audio: number
  /** In alphabetical order; null where they are hidden. */
  readonly fonts: readonly string[] | null
  readonly languages: readonly string[] | null
  readonly zone: string | null
  /** What people ask of their system, null where the browser does not tell. */
  readonly asked: {
    readonly textScale: number
    readonly reducedMotion: boolean
    readonly contrast: boolean
    readonly reducedTransparency: boolean | null
    readonly forcedColors: boolean | null
  }
  /** Beside those the system came with. */
  readonly voices: number
  readonly frame: string
  readonly equipment: { readonly audioinput: number; readonly audiooutput: number; readonly videoinput: number }
}

type Told = Readonly<Record<string, unknown>>

const PLATFORM_OF_HINT: Readonly<Record<string, Platform>> = {
  Windows: 'windows',
  macOS: 'mac',
  Linux: 'linux',
  'Chrome OS': 'chromeos',
  Android: 'android',
}
const BROWSER_OF_BRAND: Readonly<Record<string, Browser>> = {
  'Google Chrome': 'chrome',
  'Microsoft Edge': 'edge',
  Brave: 'brave',
  'Samsung Internet': 'samsung',
}
/** What `present` counts as the noise of resistFingerprinting. */
const RESISTING_PIXELS = 256
/** Macs keep this much of the screen for their menu. */
const MAC_MENU = 30

interface Named {
  readonly platform: Platform
  readonly browser: Browser
  readonly engine: Engine
  readonly version: number
}

const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)

function geckoPlatform(agent: string): Platform {
  if (agent.includes('Windows')) return 'windows'
  if (agent.includes('Macintosh')) return 'mac'
  return agent.includes('Android') ? 'android' : 'linux'
}

function named(agent: string, hints: Told | null, frame: readonly number[]): Named {
  if (hints !== null) {
    const list = hints.fullVersionList as readonly { brand: string }[]
    const browser = BROWSER_OF_BRAND[list[0]?.brand ?? ''] ?? 'chrome'
    const version = numberIn(agent, browser === 'samsung' ? /SamsungBrowser\/(\d+)/ : /Chrome\/(\d+)/)
    return { platform: PLATFORM_OF_HINT[String(hints.platform)] ?? 'linux', browser, engine: 'Blink', version }
  }
  if (agent.includes('Firefox/')) {
    const version = numberIn(agent, /Firefox\/(\d+)/)
    return { platform: geckoPlatform(agent), browser: 'firefox', engine: 'Gecko', version }
  }
  if (agent.includes('CriOS/')) {
    return { platform: 'ios', browser: 'chrome', engine: 'WebKit', version: numberIn(agent, /CriOS\/(\d+)/) - 140 }
  }
  const [, major = '26', minor = '0'] = /Version\/(\d+)\.(\d+)/.exec(agent) ?? []
  // An iPad calls itself a Mac, but has no menu.
  const mac = agent.includes('Macintosh') && frame[0] === MAC_MENU
  const version = (Number(major) - 26) * 8 + Number(minor)
  return { platform: mac ? 'mac' : 'ios', browser: 'safari', engine: 'WebKit', version }
}

/** How much larger than usual texts are. */
function textScale(platform: Platform, engine: Engine, width: number): number {
  for (const scale of [1, ...SCALES]) {
    for (let fonts = 0; fonts < 3; fonts++) {
      if (Math.abs(textWidth(textLook(platform, engine, fonts), 0, scale) - width) < 0.01) return scale
    }
  }
  return 1
}

function hardwareText(visit: Sent, { platform, browser, engine }: Named, hints: Told | null): string {
  const isBrave = browser === 'brave'
  return JSON.stringify([
    platform,
    engine,
    componentIn(visit, 'platform'),
    componentIn(visit, 'webGlBasics'),
    componentIn(visit, 'touchSupport'),
    componentIn(visit, 'architecture'),
    hints === null ? null : [hints.model, hints.architecture, hints.bitness],
    isBrave ? null : [componentIn(visit, 'hardwareConcurrency'), componentIn(visit, 'deviceMemory')],
    (visit.headers['user-agent'] ?? '').includes('iPad'),
  ])
}

/** `en-US,en;q=0.9` as a list. */
const languagesIn = (header: string): string[] => header.split(',').map((part) => part.split(';')[0] ?? '')

export function readShown(visit: Sent): Shown {
  const read = <T>(name: string): T => componentIn(visit, name) as T
  const agent = visit.headers['user-agent'] ?? ''
  const hints = read<Told | null>('userAgentData') ?? null
  const frame = read<readonly number[]>('screenFrame')
  const name = named(agent, hints, frame)
  const { platform, browser, engine } = name
  const resists = read<number>('canvasNoise') === RESISTING_PIXELS
  const { isPrivate } = read<{ isPrivate: boolean }>('incognito')
  const { geometry, text } = read<{ geometry: string; text: string }>('canvas')
  const isNoise = engine === 'Gecko' || browser === 'brave' || (engine === 'WebKit' && isPrivate)
  const [width = 0, height = 0] = read<readonly number[]>('screenResolution')
  const ratio = read<number>('devicePixelRatio')
  const depth = read<number>('colorDepth')
  const hdr = read<boolean>('hdr')
  return {
    ...name,
    resists,
    isPrivate,
    hardware: hardwareText(visit, name, hints),
    build: hints === null ? null : String(hints.platformVersion),
    screen: resists ? null : { width, height, ratio, depth, hdr },
    window: resists ? `${width}×${height}` : null,
    canvas: isNoise ? `${geometry}/${text}` : geometry,
    isNoise,
    audio: read<number>('audio'),
    fonts: resists ? null : read<readonly string[]>('fonts').toSorted(),
    languages: resists ? null : languagesIn(visit.headers['accept-language'] ?? ''),
    zone: resists ? null : read<string>('timezone'),
    asked: {
      textScale: textScale(platform, engine, read<{ default: number }>('fontPreferences').default),
      reducedMotion: read<boolean>('reducedMotion'),
      contrast: read<number>('contrast') === 1,
      reducedTransparency: read<boolean | undefined>('reducedTransparency') ?? null,
      forcedColors: read<boolean | undefined>('forcedColors') ?? null,
    },
    voices: read<number>('voices') - VOICES[platform],
    frame: frame.join(),
    equipment: read<Shown['equipment']>('mediaDevices'),
  }
}
