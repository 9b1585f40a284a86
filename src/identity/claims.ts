// The statements of one request that can contradict each other: page, worker, client hints, headers, automation.
// They are kept side by side and untouched; only the signals compare them.

import type { IdentifyBody } from '../domain/identify.ts'
import { GPU_CHARS_MAX, type Gpu } from './gpu.ts'
import type { Parsers } from './parsers.ts'
import { componentOf, flagOf, type Json, numberOf, objectOf, textOf, wholeOf } from './read.ts'
import type { UserAgent } from './user-agent.ts'

/** What client hints say, from the page where it may ask for all of them, from headers otherwise. */
export interface ClientHints {
  readonly platform: string | null
  readonly platformVersion: string | null
  readonly model: string | null
  readonly architecture: string | null
  /** Major version of the brand Chromium, as the header says or else the page. */
  readonly chromiumMajor: number | null
  /** The same as the page alone says. */
  readonly pageChromiumMajor: number | null
  readonly headless: boolean
  readonly brave: boolean
}

export interface WorkerClaims {
  readonly ua: UserAgent | null
  readonly platform: string | null
  readonly language: string | null
  readonly timezone: string | null
  readonly cores: number | null
  readonly memory: number | null
  readonly gpu: Gpu | null
}

/** What the page sees of the desk it is on. Sizes in CSS pixels, [width, height]; null what was not told. */
export interface Desk {
  /** As it is held: not turned. */
  readonly screen: Size | null
  readonly inner: Size | null
  readonly outer: Size | null
  /** Whether the system keeps nothing of the screen for itself: no bar, no dock. */
  readonly isBare: boolean | null
  /** Voices that can speak. */
  readonly voices: number | null
  /** Microphones, cameras and loudspeakers, of which a page may know how many kinds there are. */
  readonly devices: number | null
}

export type Size = readonly [width: number, height: number]

export interface Detector {
  readonly name: string
  readonly kind: string | null
}

export interface Claims {
  /** How many components came with a value. */
  readonly components: number
  readonly pageUa: UserAgent | null
  readonly platform: string | null
  readonly vendor: string | null
  readonly language: string | null
  readonly timezone: string | null
  readonly cores: number | null
  readonly memory: number | null
  readonly gpu: Gpu | null
  readonly evalLength: number | null
  readonly errorFormat: string | null
  /** Firefox alone tells it. */
  readonly osCpu: string | null
  /** Whether the page may ask for client hints at all; null when its address was not told. */
  readonly securePage: boolean | null
  /** Whether any mouse, pen or finger can point; null when not told. */
  readonly hasPointer: boolean | null
  readonly systemStyle: { readonly highlight: string; readonly font: string } | null
  /** A debugger, by a person or a program, listens to the page's console. */
  readonly inspected: boolean
  readonly desk: Desk
  readonly hints: ClientHints | null
  /** The page's userAgentData: null = said to have none, undefined = not told. */
  readonly pageHints: boolean | undefined
  readonly headerHints: boolean
  readonly headerPlatform: string | null
  readonly worker: WorkerClaims | null
  readonly lies: readonly string[]
  readonly permissions: { readonly query: string; readonly notification: string } | null
  readonly incognito: { readonly isPrivate: boolean; readonly browserName: string } | null
  readonly webdriver: boolean | null
  /** Detectors of automation that fired, and the kind each named. */
  readonly detectors: readonly Detector[]
  /** Whether any detector reported, fired or not. */
  readonly detectorsRan: boolean
  readonly headers: Readonly<Record<string, string>>
}

const COMPONENTS_MAX = 256
const LIES_MAX = 32
const DETECTORS_MAX = 64
const NO_TEXTS: readonly string[] = []

/** A structured-header string without its quotes; null when absent or empty. */
function unquoted(value: string | undefined): string | null {
  if (value === undefined) return null
  const bare = value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
  return textOf(bare, 64)
}

function brandMajor(list: string, brand: string): number | null {
  const at = list.indexOf(brand)
  if (at < 0) return null
  const major = Number.parseInt(list.slice(at + brand.length, at + brand.length + 8), 10)
  return major >= 0 ? major : null
}

function chromiumIn(list: unknown): number | null {
  if (!Array.isArray(list)) return null
  for (let i = 0; i < list.length && i < 16; i++) {
    const item = objectOf(list[i])
    if (item?.brand === 'Chromium') return wholeOf(Number.parseInt(String(textOf(item.version, 32)), 10), 0, 1e5)
  }
  return null
}

function hasBrand(list: unknown, brand: string): boolean {
  if (!Array.isArray(list)) return false
  for (let i = 0; i < list.length && i < 16; i++) if (objectOf(list[i])?.brand === brand) return true
  return false
}

function hintsOf(data: Json | null, headers: Readonly<Record<string, string>>): ClientHints | null {
  const brands = headers['sec-ch-ua']
  if (data === null && brands === undefined && headers['sec-ch-ua-platform'] === undefined) return null
  const list = data?.fullVersionList
  const pageChromiumMajor = chromiumIn(list)
  return {
    platform: textOf(data?.platform, 64) ?? unquoted(headers['sec-ch-ua-platform']),
    platformVersion: textOf(data?.platformVersion, 32) ?? unquoted(headers['sec-ch-ua-platform-version']),
    model: textOf(data?.model, 64) ?? unquoted(headers['sec-ch-ua-model']),
    architecture: textOf(data?.architecture, 16),
    chromiumMajor: (brands === undefined ? null : brandMajor(brands, '"Chromium";v="')) ?? pageChromiumMajor,
    pageChromiumMajor,
    headless: brands?.includes('Headless') === true || hasBrand(list, 'HeadlessChrome'),
    brave: brands?.includes('"Brave"') === true || hasBrand(list, 'Brave'),
  }
}

const gpuOf = (text: string | null, parsers: Parsers): Gpu | null => (text === null ? null : parsers.gpu(text))

function workerOf(value: unknown, parsers: Parsers): WorkerClaims | null {
  const worker = objectOf(value)
  if (worker === null) return null
  const ua = textOf(worker.userAgent, 1_024)
  const languages = worker.languages
  return {
    ua: ua === null ? null : parsers.userAgent(ua),
    platform: textOf(worker.platform, 64),
    language: Array.isArray(languages) ? textOf(languages[0], 35) : null,
    timezone: textOf(worker.timezone, 64),
    cores: wholeOf(worker.hardwareConcurrency, 1, 1_024),
    memory: numberOf(worker.deviceMemory, 0.1, 1_024),
    gpu: gpuOf(textOf(worker.webGlRenderer, GPU_CHARS_MAX), parsers),
  }
}

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) return NO_TEXTS
  const found: string[] = []
  for (let i = 0; i < value.length && found.length < LIES_MAX; i++) {
    const text = textOf(value[i], 96)
    if (text !== null) found.push(text)
  }
  return found
}

const NO_DETECTORS: readonly Detector[] = []

function firedOf(value: unknown): { detectors: readonly Detector[]; ran: boolean } {
  const table = objectOf(value)
  if (table === null) return { detectors: NO_DETECTORS, ran: false }
  let detectors: Detector[] | null = null
  let read = 0
  let ran = false
  for (const name in table) {
    if (++read > DETECTORS_MAX) break
    const detector = table[name]
    const detail = objectOf(detector)
    const fired = detector === true || detail?.bot === true
    ran ||= typeof detector === 'boolean' || typeof detail?.bot === 'boolean'
    if (!fired || !/^[A-Za-z]\w{0,63}$/.test(name)) continue
    const said = textOf(detail?.botKind, 32)
    detectors ??= []
    detectors.push({ name, kind: said !== null && /^[a-z_]+$/.test(said) ? said : null })
  }
  return { detectors: detectors ?? NO_DETECTORS, ran }
}

function countOf(components: unknown): number {
  const table = objectOf(components)
  if (table === null) return 0
  let count = 0
  let read = 0
  for (const name in table) {
    if (++read > COMPONENTS_MAX) break
    const entry = table[name]
    if (typeof entry === 'object' && entry !== null && (entry as Json).value !== undefined) count++
  }
  return count
}

function incognitoOf(value: unknown): Claims['incognito'] {
  const said = objectOf(value)
  const isPrivate = flagOf(said?.isPrivate)
  const browserName = textOf(said?.browserName, 32)
  return isPrivate === null || browserName === null ? null : { isPrivate, browserName }
}

function permissionsOf(value: unknown): Claims['permissions'] {
  const said = objectOf(value)
  const query = textOf(said?.notifications, 16)
  const notification = textOf(said?.notificationPermission, 16)
  return query === null || notification === null ? null : { query, notification }
}

function securePageOf(url: string | undefined): boolean | null {
  if (url === undefined) return null
  return /^(https:|http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/])/.test(url)
}

function hasPointerOf(value: unknown): boolean | null {
  const said = objectOf(value)
  const fine = flagOf(said?.fine)
  const coarse = flagOf(said?.coarse)
  return fine === null || coarse === null ? null : fine || coarse
}

function systemStyleOf(value: unknown): Claims['systemStyle'] {
  const said = objectOf(value)
  const highlight = textOf(said?.highlight, 64)
  const font = textOf(said?.font, 96)
  return highlight === null || font === null ? null : { highlight, font }
}

const PIXELS_MAX = 65_535

function sizeOf(value: unknown): Size | null {
  if (!Array.isArray(value)) return null
  const width = numberOf(value[0], 1, PIXELS_MAX)
  const height = numberOf(value[1], 1, PIXELS_MAX)
  return width === null || height === null ? null : [width, height]
}

/** Of a frame of four sides; one that is not told says nothing. */
function isBareOf(frame: unknown): boolean | null {
  if (!Array.isArray(frame) || frame.length !== 4) return null
  for (let side = 0; side < 4; side++) {
    const kept = numberOf(frame[side], -PIXELS_MAX, PIXELS_MAX)
    if (kept === null) return null
    if (kept !== 0) return false
  }
  return true
}

function devicesOf(value: unknown): number | null {
  const counts = objectOf(value)
  if (counts === null) return null
  let sum = 0
  for (const kind of DEVICE_KINDS) {
    const count = wholeOf(counts[kind], 0, 1_000)
    if (count === null) return null
    sum += count
  }
  return sum
}
const DEVICE_KINDS = ['audioinput', 'audiooutput', 'videoinput'] as const

function deskOf(components: IdentifyBody['components']): Desk {
  const window = objectOf(componentOf(components, 'window'))
  return {
    screen: sizeOf(componentOf(components, 'screenResolution')),
    inner: sizeOf(window?.inner),
    outer: sizeOf(window?.outer),
    isBare: isBareOf(componentOf(components, 'screenFrame')),
    voices: wholeOf(componentOf(components, 'voices'), 0, 100_000),
    devices: devicesOf(componentOf(components, 'mediaDevices')),
  }
}

/** Gathers the statements of a request. Values of the wrong type count as not given. */
export function readClaims(body: IdentifyBody, headers: Readonly<Record<string, string>>, parsers: Parsers): Claims {
  const components = body.components
  const pageUa = textOf(componentOf(components, 'userAgent'), 1_024)
  const data = componentOf(components, 'userAgentData')
  const webgl = objectOf(componentOf(components, 'webGlBasics'))
  const renderer = textOf(webgl?.rendererUnmasked, GPU_CHARS_MAX) ?? textOf(webgl?.renderer, GPU_CHARS_MAX)
  const languages = componentOf(components, 'languages')
  const first: unknown = Array.isArray(languages) ? languages[0] : null
  const fired = firedOf(body.automation?.detectors)
  return {
    components: countOf(components),
    pageUa: pageUa === null ? null : parsers.userAgent(pageUa),
    platform: textOf(componentOf(components, 'platform'), 64),
    vendor: textOf(componentOf(components, 'vendor'), 64),
    language: textOf(Array.isArray(first) ? first[0] : first, 35),
    timezone: textOf(componentOf(components, 'timezone'), 64),
    cores: wholeOf(componentOf(components, 'hardwareConcurrency'), 1, 1_024),
    memory: numberOf(componentOf(components, 'deviceMemory'), 0.1, 1_024),
    gpu: gpuOf(renderer, parsers),
    evalLength: wholeOf(componentOf(components, 'evalLength'), 0, 10_000),
    errorFormat: textOf(componentOf(components, 'errorFormat'), 256),
    osCpu: textOf(componentOf(components, 'osCpu'), 64),
    securePage: securePageOf(body.url),
    hasPointer: hasPointerOf(componentOf(components, 'pointer')),
    systemStyle: systemStyleOf(componentOf(components, 'systemStyle')),
    inspected: componentOf(components, 'inspected') === true,
    desk: deskOf(components),
    hints: hintsOf(objectOf(data), headers),
    pageHints: data === undefined ? undefined : objectOf(data) !== null,
    headerHints: headers['sec-ch-ua'] !== undefined && headers['sec-ch-ua'] !== '',
    headerPlatform: unquoted(headers['sec-ch-ua-platform']),
    worker: workerOf(componentOf(components, 'worker'), parsers),
    lies: textsOf(componentOf(components, 'lies')),
    permissions: permissionsOf(componentOf(components, 'permissions')),
    incognito: incognitoOf(componentOf(components, 'incognito')),
    webdriver: flagOf(body.automation?.webdriver),
    detectors: fired.detectors,
    detectorsRan: fired.ran,
    headers,
  }
}
