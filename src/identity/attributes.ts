// What is known of a device from one request: the page's claims and the headers, read defensively, with a comparable
// profile made of them. Claims that contradict each other are all kept; the signals judge them.

import type { Device } from '../domain/event.ts'
import type { IdentifyBody } from '../domain/identify.ts'
import { hash53, hash53Each } from '../domain/ids.ts'
import type { Native } from '../domain/native.ts'
import { type Claims, readClaims } from './claims.ts'
import type { Gpu } from './gpu.ts'
import { type Parsers, plainParsers } from './parsers.ts'
import {
  AUDIO,
  CANVAS,
  CORES,
  FONTS,
  GPU,
  LANGUAGES,
  MEMORY,
  MODEL,
  noValues,
  PLATFORM_VERSION,
  type Profile,
  RATIO,
  SCREEN,
  screenCode,
  TIMEZONE,
} from './profile.ts'
import { componentOf, numberOf, objectOf, textOf, wholeOf } from './read.ts'
import { putTraits } from './traits.ts'
import { type DeviceType, majorOf, type Os, type UserAgent } from './user-agent.ts'

export interface Attributes {
  /** What the request's own header (or the server that asks for its client) says. */
  readonly ua: UserAgent
  readonly os: Os
  readonly osVersion: string | null
  readonly browserFamily: string
  readonly browserMajor: number | null
  readonly browserVersion: string | null
  readonly deviceType: DeviceType
  readonly gpu: Gpu | null
  readonly model: string | null
  /** [larger, smaller], however the device is held. */
  readonly screen: readonly [number, number] | null
  readonly devicePixelRatio: number | null
  readonly cores: number | null
  readonly memory: number | null
  /** Hash of both drawings; null when the browser draws noise or a new one each session. */
  readonly canvas: number | null
  readonly audio: number | null
  readonly fonts: number | null
  readonly fontCount: number | null
  readonly languages: readonly string[]
  readonly timezone: string | null
  readonly platformVersion: string | null
  readonly architecture: string | null
  readonly math: number | null
  readonly colorDepth: number | null
  readonly touchPoints: number | null
  /** The browser hides by adding noise (RFP, Brave, canvas blockers): privacy, not deceit. */
  readonly privacyNoise: boolean
  /** A private window, as the incognito component of a known browser says. */
  readonly incognito: boolean
  readonly claims: Claims
  readonly native: Native | null
  /** An app's own code sent the request, not a page: an HTTP library's User-Agent is what is expected. */
  readonly fromApp: boolean
  readonly profile: Profile
}

const APP_SDKS: readonly string[] = ['android', 'ios', 'react-native', 'flutter']
const SCREEN_MAX = 32_767
const LANGUAGES_MAX = 16
const LANGUAGE_CHARS_MAX = 35
const NO_LANGUAGES: readonly string[] = []
const FONTS_MAX = 512
const FONT_CHARS_MAX = 64

function screenOf(value: unknown): [number, number] | null {
  if (!Array.isArray(value)) return null
  const w = wholeOf(value[0], 1, SCREEN_MAX)
  const h = wholeOf(value[1], 1, SCREEN_MAX)
  return w === null || h === null ? null : w >= h ? [w, h] : [h, w]
}

// Gathered here and copied: a list that grows from nothing makes room for sixteen at once, and most pages name one or two.
const languagesFound: string[] = new Array(LANGUAGES_MAX).fill('')

function languagesOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return NO_LANGUAGES
  let found = 0
  const find = (one: unknown) => {
    const language = found < LANGUAGES_MAX ? textOf(one, LANGUAGE_CHARS_MAX) : null
    if (language !== null) languagesFound[found++] = language
  }
  for (let i = 0; i < value.length && found < LANGUAGES_MAX; i++) {
    const item: unknown = value[i]
    if (!Array.isArray(item)) find(item)
    else for (let j = 0; j < item.length && found < LANGUAGES_MAX; j++) find(item[j])
  }
  return found === 0 ? NO_LANGUAGES : languagesFound.slice(0, found)
}

const scratch = new Float64Array(1)
const scratchWords = new Uint32Array(scratch.buffer)

function mathOf(value: unknown): number | null {
  const table = objectOf(value)
  if (table === null) return typeof value === 'string' && value !== '' ? hash53(value.slice(0, 512)) : null
  let a = 0
  let b = 0
  let n = 0
  for (const name in table) {
    if (++n > 64) break
    const x = table[name]
    if (typeof x !== 'number') continue
    scratch[0] = x
    a = Math.imul(a ^ (scratchWords[0] as number), 2654435761)
    b = Math.imul(b ^ (scratchWords[1] as number) ^ (a >>> 15), 1597334677)
  }
  return n === 0 ? null : (b & 0x1fffff) * 4294967296 + (a >>> 0)
}

function canvasOf(value: unknown): { hash: number | null; noisy: boolean } {
  const canvas = objectOf(value)
  const geometry = canvas?.geometry
  const text = canvas?.text
  if (typeof geometry !== 'string' || typeof text !== 'string') return { hash: null, noisy: false }
  const noisy = canvas?.stable === false || geometry === 'unstable' || text === 'unstable'
  if (noisy || geometry === 'skipped' || geometry === 'unsupported' || geometry === '') return { hash: null, noisy }
  // Two hashes folded into one number; xor alone would let swapped drawings agree.
  return { hash: hash53(text, hash53(geometry) % 0x7fffffff), noisy }
}

/** What FingerprintJS calls architecture is a byte of a NaN: 255 on x86, 127 on ARM. */
function architectureOf(value: unknown, hints: Claims['hints']): string | null {
  if (hints !== null && hints.architecture !== null) return hints.architecture
  if (value === 255) return 'x86'
  return value === 127 ? 'arm' : textOf(value, 16)
}

function osVersionOf(os: Os, ua: UserAgent, platformVersion: string | null, native: string | null): string | null {
  if (native !== null) return native
  const major = majorOf(platformVersion)
  if (os === 'Windows' && ua.osVersion === '10' && major !== null && major > 0) return major >= 13 ? '11' : '10'
  if ((os === 'macOS' || os === 'Android') && major !== null && major > 0) return platformVersion
  return os === ua.os ? ua.osVersion : null
}

/** iPads ask for desktop pages by calling themselves Macs; no Mac has a touch screen. */
export const isPadAsMac = (ua: UserAgent, touchPoints: number | null): boolean =>
  ua.os === 'macOS' && touchPoints !== null && touchPoints > 1 && ua.engine === 'WebKit'

const NATIVE_OS = { android: 'Android', ios: 'iOS' } as const

/**
 * Reads everything a request tells about its device. `userAgent` is the header's text (or the one a server names for
 * its client), empty when there is none: the page's own claim then stands in. Never throws, whatever the components hold.
 */
export function readAttributes(
  body: IdentifyBody,
  headers: Readonly<Record<string, string>>,
  userAgent: string,
  parsers: Parsers = plainParsers,
): Attributes {
  const components = body.components
  const claims = readClaims(body, headers, parsers)
  const ua = userAgent === '' && claims.pageUa !== null ? claims.pageUa : parsers.userAgent(userAgent)
  const native = body.native ?? null
  const touchPoints = wholeOf(objectOf(componentOf(components, 'touchSupport'))?.maxTouchPoints, 0, 256)
  const pad = isPadAsMac(ua, touchPoints)
  const os: Os = native !== null ? (NATIVE_OS[native.platform] ?? 'other') : pad ? 'iOS' : ua.os
  const deviceType: DeviceType = pad ? 'tablet' : native !== null && ua.type === 'other' ? 'mobile' : ua.type
  const family = native !== null && ua.os === 'other' ? 'app' : ua.family
  const platformVersion = claims.hints?.platformVersion ?? null

  const canvas = canvasOf(componentOf(components, 'canvas'))
  const noisePixels = numberOf(componentOf(components, 'canvasNoise'), 0, 1e9)
  const brave = family === 'Brave' || claims.hints?.brave === true
  const privacyNoise = canvas.noisy || (noisePixels !== null && noisePixels > 0) || brave
  const incognito = claims.incognito?.isPrivate === true
  // Firefox draws differently in every session and Safari in private windows: their pixels identify nothing.
  const steady = !privacyNoise && ua.engine !== 'Gecko' && !(ua.engine === 'WebKit' && incognito)

  const gpu = claims.gpu
  const model = textOf(native?.model, 64) ?? claims.hints?.model ?? ua.model
  const screen = screenOf(componentOf(components, 'screenResolution'))
  const devicePixelRatio = numberOf(componentOf(components, 'devicePixelRatio'), 0.1, 32)
  const cores = claims.cores
  const memory = claims.memory
  const audio = numberOf(componentOf(components, 'audio'), 0.001, 1e6)
  const fontList = componentOf(components, 'fonts')
  const fonts = Array.isArray(fontList) ? hash53Each(fontList, FONTS_MAX, FONT_CHARS_MAX) : null
  const languages = languagesOf(componentOf(components, 'languages'))
  const timezone = textOf(componentOf(components, 'timezone'), 64)
  const osVersion = osVersionOf(os, ua, platformVersion, textOf(native?.osVersion, 32))

  const build = platformVersion ?? (os === 'iOS' ? osVersion : null)
  const values = noValues()
  values[GPU] = gpu === null ? null : gpu.hash
  values[MODEL] = model === null ? null : hash53(model)
  values[SCREEN] = screen === null ? null : screenCode(screen[0], screen[1])
  values[RATIO] = devicePixelRatio
  // WebKit adds noise and rounds cores in one go.
  values[CORES] = privacyNoise && ua.engine === 'WebKit' ? null : cores
  values[MEMORY] = memory
  values[CANVAS] = steady ? canvas.hash : null
  values[AUDIO] = steady && !brave ? audio : null
  values[FONTS] = fonts
  values[LANGUAGES] = languages.length === 0 ? null : hash53(languages.join())
  values[TIMEZONE] = timezone === null ? null : hash53(timezone)
  values[PLATFORM_VERSION] = build === null ? null : hash53(build)
  putTraits(values, components, privacyNoise)
  return {
    ua,
    os,
    osVersion,
    browserFamily: family,
    browserMajor: ua.major,
    browserVersion: ua.version,
    deviceType,
    gpu,
    model,
    screen,
    devicePixelRatio,
    cores,
    memory,
    canvas: steady ? canvas.hash : null,
    audio,
    fonts,
    fontCount: Array.isArray(fontList) ? fontList.length : null,
    languages,
    timezone,
    platformVersion,
    architecture: architectureOf(componentOf(components, 'architecture'), claims.hints),
    math: mathOf(componentOf(components, 'math')),
    colorDepth: wholeOf(componentOf(components, 'colorDepth'), 1, 128),
    touchPoints,
    privacyNoise,
    incognito,
    claims,
    native,
    fromApp: native !== null || (body.sdk !== undefined && APP_SDKS.includes(body.sdk.name)),
    profile: { os, family, major: ua.major, gpuClass: gpu === null ? null : gpu.class, values },
  }
}

/** As a row can keep it: a text that was cut to length may end in half of a surrogate pair, and an empty one is an absent one. */
const storable = (text: string | null): string | null => (text === null || text === '' ? null : text.toWellFormed())

/** As it was reported: a phone that is held upright is higher than it is wide. */
function sizeShown([larger, smaller]: readonly [number, number], { desk }: Claims): Device['screen'] {
  const isUpright = desk.screen !== null && desk.screen[0] < desk.screen[1]
  return isUpright ? { w: smaller, h: larger } : { w: larger, h: smaller }
}

/** The device as events show it. */
export function deviceOf(attributes: Attributes, body: IdentifyBody): Device {
  const { screen, ua } = attributes
  const display = attributes.browserFamily === ua.family ? ua.display : attributes.browserFamily
  return {
    platform: attributes.os,
    osVersion: storable(attributes.osVersion),
    browser: storable(display) ?? 'other',
    browserVersion: storable(attributes.browserVersion),
    gpu: storable(attributes.gpu === null ? null : attributes.gpu.name),
    type: attributes.deviceType,
    screen: screen === null ? null : sizeShown(screen, attributes.claims),
    model: storable(attributes.model),
    appVersion: storable(textOf(body.native?.appVersion, 64)),
    language: storable(attributes.languages[0] ?? null),
    timezone: storable(attributes.timezone),
  }
}
