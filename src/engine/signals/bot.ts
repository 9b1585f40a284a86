// bot: a program drives the browser, or there is no browser at all.

import type { Signal } from '../../domain/event.ts'
import type { Attributes } from '../../identity/attributes.ts'
import type { Claims, Detector } from '../../identity/claims.ts'
import { BOT, DETECTED_MIN } from '../weights.ts'
import { deskChecks } from './desk.ts'
import { type EvidenceTally, name, newTally, raise, type SignalInput, undetermined, verdictOf } from './evidence.ts'

const CLEAR_MAX = 0.95
const DETECTORS_TOLD_MAX = 4
/** Kinds that say no more than that it is one. Detectors name headless Chrome for whatever is true of it, windows or not, even on Firefox. */
const VAGUE_KINDS: readonly (string | null)[] = [null, 'unknown', 'headless_chrome']

// `prompt` and `default` are two words for one state; browsers on pages without TLS answer denied to both or to one.
const PERMISSION_OF: ReadonlyMap<string, string> = new Map([
  ['default', 'prompt'],
  ['granted', 'granted'],
  ['denied', 'denied'],
])

// Detectors that some people's browsers set off too: without plugins for PDF, in applications, in phones' own browsers.
// Those that look at one thing are one witness. A detector of any other name is proof.
const WEAK: Readonly<Record<string, keyof typeof BOT>> = {
  detectPluginsArray: 'plugins_odd',
  detectPluginsLengthInconsistency: 'plugins_odd',
  detectMimeTypesConsistent: 'plugins_odd',
  detectProductSub: 'engine_odd',
  detectEvalLengthInconsistency: 'engine_odd',
  detectWindowSize: 'window_without_size',
  detectLanguagesLengthInconsistency: 'no_languages',
  detectNotificationPermissions: 'permissions_inconsistent',
}

// What headless Firefox answers for colour and font of its system; resistFingerprinting has the same colour.
const HEADLESS_STYLE = { highlight: 'rgb(51, 153, 255)', font: 'sans-serif 14px' }
const HEADLESS_SCREEN = { w: 800, h: 600 }

function permissionsDisagree({ claims }: Attributes): boolean {
  const said = claims.permissions
  const wanted = said === null ? undefined : PERMISSION_OF.get(said.notification)
  return wanted !== undefined && wanted !== said?.query
}

/** Every browser sends Accept-Language; a copied User-Agent in a plain HTTP library does not. */
function headersIncomplete({ claims, ua }: Attributes): boolean {
  const headers = claims.headers
  return ua.engine !== 'other' && headers.accept !== undefined && headers['accept-language'] === undefined
}

function headless({ ua, claims }: Attributes): boolean {
  return (
    ua.headless ||
    claims.pageUa?.headless === true ||
    claims.worker?.ua?.headless === true ||
    claims.hints?.headless === true
  )
}

/** A name of its own among programs: neither a browser's nor that of a system's part. */
const isProgram = ({ engine, os, text }: Attributes['ua']): boolean =>
  engine === 'other' && os === 'other' && !text.startsWith('Mozilla/')

const NAMED_CRAWLER = /\+https?:|(?:bot|crawler|spider)\b/i
/** Apps speak through HTTP libraries or under names of their own, which no list of browsers knows. */
const speaksAsApp = ({ fromApp, ua }: Attributes): boolean =>
  fromApp && ua.engine === 'other' && !ua.headless && !NAMED_CRAWLER.test(ua.text)

function onServer(tally: EvidenceTally, attributes: Attributes): void {
  if (headless(attributes)) raise(tally, 'headless_ua', BOT.headless_ua)
  else if (attributes.ua.bot && !speaksAsApp(attributes)) raise(tally, 'isbot_ua', BOT.isbot_ua)
  if (headersIncomplete(attributes)) raise(tally, 'headers_incomplete', BOT.headers_incomplete)
}

/** Somebody replaced or removed the member that admits automation: nobody else has a reason to. */
function hidesWebdriver({ claims, ua }: Attributes): boolean {
  // Every Chromium and Firefox of these years has it; not every web view of other engines.
  const always = ua.engine === 'Blink' || ua.engine === 'Gecko'
  if (claims.lies.length === 0) return false
  return claims.lies.some((lie) => lie.startsWith('Navigator.webdriver:') && (always || !lie.endsWith(':missing')))
}

function raiseOnce(tally: EvidenceTally, method: keyof typeof BOT): void {
  if (!tally.methods.includes(method)) raise(tally, method, BOT[method])
}

const weaknessOf = ({ name, kind }: Detector): keyof typeof BOT | undefined =>
  Object.hasOwn(WEAK, name) ? WEAK[name] : kind === 'electron' ? 'electron' : undefined

function detectorChecks(tally: EvidenceTally, { detectors }: Claims): void {
  if (detectors.length === 0) return
  const proofs: string[] = []
  for (const detector of detectors) {
    const weak = weaknessOf(detector)
    if (weak !== undefined) raiseOnce(tally, weak)
    else if (proofs.length < DETECTORS_TOLD_MAX) proofs.push(`botd:${detector.name}`)
  }
  // They look at overlapping things: together they are one witness.
  if (proofs[0] === undefined) return
  raise(tally, proofs[0], BOT.detector)
  for (let i = 1; i < proofs.length; i++) name(tally, proofs[i] as string)
}

/** Desktops have something to point with, and windows that somebody sees. */
function headlessChecks(tally: EvidenceTally, attributes: Attributes): void {
  const { claims, ua, deviceType, screen, touchPoints } = attributes
  if (deviceType !== 'desktop') return
  if (ua.engine === 'Blink' && screen !== null && screen[0] <= HEADLESS_SCREEN.w && screen[1] <= HEADLESS_SCREEN.h) {
    raise(tally, 'headless_screen', BOT.headless_screen)
  }
  const isPointless = claims.hasPointer === false && (touchPoints ?? 0) === 0
  deskChecks(tally, attributes, isPointless)
  if (!isPointless) return
  raise(tally, 'no_pointer', BOT.no_pointer)
  const style = claims.systemStyle
  if (ua.engine === 'Gecko' && style?.highlight === HEADLESS_STYLE.highlight && style.font === HEADLESS_STYLE.font) {
    raise(tally, 'headless_style', BOT.headless_style)
  }
}

function onClient(tally: EvidenceTally, attributes: Attributes, tampered: Signal): void {
  const { claims } = attributes
  if (claims.webdriver === true) raise(tally, 'webdriver', BOT.webdriver)
  else if (hidesWebdriver(attributes)) raise(tally, 'webdriver_hidden', BOT.webdriver_hidden)
  detectorChecks(tally, claims)
  if (permissionsDisagree(attributes)) raiseOnce(tally, 'permissions_inconsistent')
  if (claims.inspected) raise(tally, 'inspector_attached', BOT.inspector_attached)
  headlessChecks(tally, attributes)
  if (tampered.state === 'detected') raise(tally, 'tampered_environment', BOT.tampered_environment)
  const gpu = claims.worker?.gpu ?? attributes.gpu
  if (gpu !== null && gpu.class === 'software') raise(tally, 'software_gpu', BOT.software_gpu)
}

/** Needs the tampered signal of the same visit. Without page data only what the User-Agent admits can be told. */
export function detectBot({ attributes, network }: SignalInput, tampered: Signal): Signal {
  const tally = newTally()
  const { claims } = attributes
  onServer(tally, attributes)
  if (claims.components === 0 && claims.webdriver === null && !claims.detectorsRan) {
    const signal = verdictOf(tally, DETECTED_MIN.bot, CLEAR_MAX, 'server')
    return signal.state === 'detected' ? signal : undetermined()
  }
  onClient(tally, attributes, tampered)
  if (network.address.hosting !== null) raise(tally, 'datacenter', BOT.datacenter)
  const signal = verdictOf(tally, DETECTED_MIN.bot, CLEAR_MAX, 'client')
  // Nothing that an app sends would be missing if a program had written it.
  return signal.state === 'detected' || !speaksAsApp(attributes) ? signal : undetermined()
}

/** What kind of bot, null unless detected: a detector's kind, `headless_chrome`, `crawler`, `http_client`, `automation`. */
export function botTypeOf({ attributes }: SignalInput, bot: Signal): string | null {
  if (bot.state !== 'detected') return null
  const { claims, ua } = attributes
  if (headless(attributes)) return 'headless_chrome'
  if (ua.bot && !speaksAsApp(attributes))
    return isProgram(ua) && !NAMED_CRAWLER.test(ua.text) ? 'http_client' : 'crawler'
  const kind = claims.detectors.find((one) => weaknessOf(one) === undefined)?.kind ?? null
  return VAGUE_KINDS.includes(kind) ? 'automation' : kind
}
