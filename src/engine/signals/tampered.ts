// tampered: the environment contradicts itself. Noise that a privacy tool adds is no contradiction and never raises it.

import type { Signal } from '../../domain/event.ts'
import type { Attributes } from '../../identity/attributes.ts'
import type { Engine, Os } from '../../identity/user-agent.ts'
import { DETECTED_MIN, TAMPERED } from '../weights.ts'
import { type EvidenceTally, newTally, raise, type SignalInput, undetermined, verdictOf } from './evidence.ts'
import { nativeContradictions } from './native-flags.ts'

const CLEAR_MAX = 0.9
/** Chromium below this had no client hints. */
const HINTS_SINCE_MAJOR = 90

function platformFits(os: Os, platform: string, disguisedPad: boolean): boolean {
  switch (os) {
    case 'Windows':
      return platform.startsWith('Win')
    case 'macOS':
      return platform.startsWith('Mac')
    case 'iOS':
      return /^iP(hone|ad|od)/.test(platform) || (disguisedPad && platform.startsWith('Mac'))
    case 'Android':
      return platform.startsWith('Linux') || platform === 'Android'
    case 'Linux':
    case 'ChromeOS':
      return platform.startsWith('Linux') || platform.startsWith('X11') || platform.startsWith('CrOS')
    default:
      return true
  }
}

const HINT_NAMES: ReadonlyMap<string, Os> = new Map([
  ['Windows', 'Windows'],
  ['macOS', 'macOS'],
  ['Linux', 'Linux'],
  ['Android', 'Android'],
  ['Chrome OS', 'ChromeOS'],
  ['Chromium OS', 'ChromeOS'],
  ['iOS', 'iOS'],
])

/** Length of the printed `eval`: V8 prints one line, Gecko and WebKit three. */
const EVAL_LENGTH: Readonly<Record<Engine, number | null>> = { Blink: 33, Gecko: 37, WebKit: 37, other: null }
const VENDOR: Readonly<Record<Engine, string | null>> = {
  Blink: 'Google Inc.',
  Gecko: null,
  WebKit: 'Apple Computer, Inc.',
  other: null,
}

function engineMismatch({ claims, ua }: Attributes): boolean {
  const expected = EVAL_LENGTH[ua.engine]
  if (expected !== null && (claims.evalLength === 33 || claims.evalLength === 37)) return claims.evalLength !== expected
  const format = claims.errorFormat
  if (format === null || ua.engine === 'other') return false
  const engine = format.includes('lineNumber') ? 'Gecko' : format.includes('sourceURL') ? 'WebKit' : null
  return engine !== null && engine !== ua.engine
}

const sameLanguage = (a: string, b: string): boolean => a === b || a.toLowerCase() === b.toLowerCase()

function workerChecks(tally: EvidenceTally, attributes: Attributes): void {
  const { claims, privacyNoise } = attributes
  const worker = claims.worker
  if (worker === null) return
  const page = claims.pageUa ?? attributes.ua
  if (worker.platform !== null && claims.platform !== null && worker.platform !== claims.platform) {
    raise(tally, 'worker_platform', TAMPERED.worker_platform)
  }
  if (worker.ua !== null && worker.ua.text !== page.text) raise(tally, 'worker_user_agent', TAMPERED.worker_user_agent)
  // Privacy browsers make up hardware for each context on its own.
  if (!privacyNoise) {
    if (worker.cores !== null && claims.cores !== null && worker.cores !== claims.cores) {
      raise(tally, 'worker_cores', TAMPERED.worker_cores)
    }
    if (worker.memory !== null && claims.memory !== null && worker.memory !== claims.memory) {
      raise(tally, 'worker_memory', TAMPERED.worker_memory)
    }
    const a = worker.gpu
    const b = claims.gpu
    if (a !== null && b !== null && a.class !== 'masked' && b.class !== 'masked' && a.hash !== b.hash) {
      raise(tally, 'worker_gpu', TAMPERED.worker_gpu)
    }
  }
  if (worker.timezone !== null && claims.timezone !== null && worker.timezone !== claims.timezone) {
    raise(tally, 'worker_timezone', TAMPERED.worker_timezone)
  }
  if (worker.language !== null && claims.language !== null && !sameLanguage(worker.language, claims.language)) {
    raise(tally, 'worker_language', TAMPERED.worker_language)
  }
}

function namesAnother(os: Os, name: string | null): boolean {
  const named = name === null || os === 'other' ? undefined : HINT_NAMES.get(name)
  return named !== undefined && named !== os
}

const differ = (major: number | null, said: number | null | undefined): boolean =>
  said != null && major !== null && said !== major

function hintChecks(tally: EvidenceTally, { claims, ua }: Attributes): void {
  const { hints } = claims
  if (ua.engine === 'Gecko' || (ua.engine === 'WebKit' && ua.os !== 'other')) {
    if (claims.headerHints || (claims.pageHints === true && hints?.platform != null)) {
      raise(tally, 'hints_on_other_engine', TAMPERED.hints_on_other_engine)
    }
    return
  }
  if (ua.engine !== 'Blink') return
  if (namesAnother(ua.os, hints?.platform ?? null) || namesAnother(ua.os, claims.headerPlatform)) {
    raise(tally, 'ua_client_hints', TAMPERED.ua_client_hints)
  }
  if (differ(ua.chromiumMajor, hints?.chromiumMajor) || differ(ua.chromiumMajor, hints?.pageChromiumMajor)) {
    raise(tally, 'hints_version', TAMPERED.hints_version)
  }
  // Hints that are there but name no platform are what a replaced User-Agent leaves behind.
  const blanked = claims.pageHints === true && hints !== null && hints.platform === null
  const removed = claims.pageHints === false && claims.securePage === true && ua.family !== 'Android WebView'
  if ((blanked || removed) && (ua.chromiumMajor ?? 0) >= HINTS_SINCE_MAJOR) {
    raise(tally, 'hints_missing', TAMPERED.hints_missing)
  }
}

function gpuMisplaced({ gpu, os }: Attributes): boolean {
  if (gpu === null) return false
  if (gpu.api === 'direct3d') return os !== 'Windows' && os !== 'other'
  if (gpu.api === 'metal') return os !== 'macOS' && os !== 'iOS' && os !== 'other'
  if (gpu.api === 'mac-opengl') return os === 'Windows' || os === 'Android' || os === 'Linux' || os === 'ChromeOS'
  switch (gpu.class) {
    case 'apple':
      return os === 'Windows' || os === 'Android' || os === 'ChromeOS'
    case 'qualcomm':
    case 'arm':
    case 'imagination':
      return os === 'macOS'
    case 'nvidia':
    case 'amd':
    case 'intel':
    case 'software':
      return os === 'iOS'
    default:
      return false
  }
}

// What a device is told apart by. Other replaced members are noise: privacy tools put their own drawing, sound and
// do-not-track answers there.
const TELLING =
  /^(Navigator\.(userAgent|appVersion|platform|vendor|language|hardwareConcurrency|deviceMemory|webdriver|plugins|mimeTypes|maxTouchPoints)|Screen\.|Permissions\.|Function\.|HTMLIFrameElement\.)/

function lieChecks(tally: EvidenceTally, lies: readonly string[]): void {
  let overridden = false
  let frame = false
  let clock = false
  let noise = false
  for (const lie of lies) {
    // What was removed belongs to automation, which is another signal.
    if (lie.endsWith(':missing')) continue
    if (lie.startsWith('Date.')) clock = true
    else if (!TELLING.test(lie)) noise = true
    else if (lie.endsWith(':frame')) frame = true
    else overridden = true
  }
  if (overridden) raise(tally, 'native_overridden', TAMPERED.native_overridden)
  if (frame) raise(tally, 'frame_differs', TAMPERED.frame_differs)
  if (clock) raise(tally, 'clock_overridden', TAMPERED.clock_overridden)
  if (noise) raise(tally, 'noise_overridden', TAMPERED.noise_overridden)
}

/** Firefox's fingerprinting protection sends a general system in the header and another one to scripts. */
function headerDiffers({ ua, claims, privacyNoise }: Attributes): boolean {
  const page = claims.pageUa
  if (page === null || page.text === ua.text || ua.text === '') return false
  if (page.family !== ua.family || page.major !== ua.major) return true
  return page.os !== ua.os && !(privacyNoise && ua.engine === 'Gecko')
}

/** `de` of `de-AT,de;q=0.9`, two or three letters; null of what is no language. By hand: most visits ask for three texts. */
function primaryOf(text: string): string | null {
  const trimmed = text.trimStart()
  let letters = 0
  while (letters < trimmed.length && isLetter(trimmed.charCodeAt(letters))) letters++
  return letters === 2 || letters === 3 ? trimmed.slice(0, letters).toLowerCase() : null
}

const isLetter = (c: number): boolean => (c >= 65 && c <= 90) || (c >= 97 && c <= 122)

/** The language the header asks for first is none of the page's; regions are written in too many ways to compare. */
function languageDiffers({ claims, languages }: Attributes): boolean {
  const asked = primaryOf(claims.headers['accept-language'] ?? '')
  if (asked === null || languages.length === 0) return false
  for (const language of languages) if (primaryOf(language) === asked) return false
  return true
}

/** Firefox names the system once more beside the User-Agent. */
function osCpuDiffers({ claims, ua }: Attributes): boolean {
  const { osCpu } = claims
  if (osCpu === null) return false
  if (ua.engine !== 'Gecko') return ua.engine !== 'other'
  const page = claims.pageUa ?? ua
  switch (page.os) {
    case 'Windows':
      return !osCpu.includes('Windows')
    case 'macOS':
      return !osCpu.includes('Mac')
    case 'Linux':
    case 'Android':
    case 'ChromeOS':
      return osCpu.includes('Windows') || osCpu.includes('Mac')
    default:
      return false
  }
}

/** Without components nothing can be compared but the token with ours: undetermined, and a forged one is named. */
export function detectTampered({ attributes, evidence }: SignalInput): Signal {
  const { claims, ua, os } = attributes
  const tally = newTally()
  nativeContradictions(tally, attributes)
  const appSays = attributes.native?.hooked !== undefined || tally.methods.length > 0
  if (evidence.includes('token_forged')) raise(tally, 'token_forged', TAMPERED.token_forged)
  if (claims.components === 0) {
    if (appSays) return verdictOf(tally, DETECTED_MIN.tampered, CLEAR_MAX, 'native')
    return tally.methods.length === 0 ? undetermined() : { ...undetermined(), methods: tally.methods }
  }
  workerChecks(tally, attributes)
  hintChecks(tally, attributes)
  if (claims.lies.length > 0) lieChecks(tally, claims.lies)
  const pageOs = claims.pageUa?.os ?? ua.os
  if (claims.platform !== null && !platformFits(pageOs, claims.platform, os === 'iOS')) {
    raise(tally, 'ua_platform', TAMPERED.ua_platform)
  }
  if (osCpuDiffers(attributes)) raise(tally, 'os_cpu', TAMPERED.os_cpu)
  if (languageDiffers(attributes)) raise(tally, 'header_language', TAMPERED.header_language)
  if (headerDiffers(attributes)) raise(tally, 'header_user_agent', TAMPERED.header_user_agent)
  if (engineMismatch(attributes)) raise(tally, 'engine_mismatch', TAMPERED.engine_mismatch)
  const vendor = VENDOR[ua.engine]
  if (vendor !== null && claims.vendor !== null && claims.vendor !== vendor) {
    raise(tally, 'vendor_mismatch', TAMPERED.vendor_mismatch)
  }
  if (gpuMisplaced(attributes)) raise(tally, 'gpu_platform', TAMPERED.gpu_platform)
  const phone = ua.type === 'mobile' && (os === 'Android' || os === 'iOS')
  if (phone && attributes.touchPoints === 0) raise(tally, 'mobile_without_touch', TAMPERED.mobile_without_touch)
  if (evidence.includes('token_contradiction')) raise(tally, 'token_contradiction', TAMPERED.token_contradiction)
  return verdictOf(tally, DETECTED_MIN.tampered, CLEAR_MAX, 'client')
}
