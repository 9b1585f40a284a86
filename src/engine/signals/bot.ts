// bot: a program drives the browser, or there is no browser at all.

import type { Signal } from '../../domain/event.ts'
import type { Attributes } from '../../identity/attributes.ts'
import { BOT, DETECTED_MIN } from '../weights.ts'
import { newTally, raise, type SignalInput, type Tally, undetermined, verdictOf } from './evidence.ts'

const CLEAR_MAX = 0.95
const KINDS: Readonly<Record<string, string>> = { unknown: 'automation' }

// `prompt` and `default` are two words for one state; browsers on pages without TLS answer denied to both or to one.
const PERMISSION_OF: Readonly<Record<string, string>> = { default: 'prompt', granted: 'granted', denied: 'denied' }

function permissionsDisagree({ claims }: Attributes): boolean {
  const said = claims.permissions
  return (
    said !== null && PERMISSION_OF[said.notification] !== undefined && PERMISSION_OF[said.notification] !== said.query
  )
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

function onServer(tally: Tally, attributes: Attributes): void {
  if (headless(attributes)) raise(tally, 'headless_ua', BOT.headless_ua)
  else if (attributes.ua.bot) raise(tally, 'isbot_ua', BOT.isbot_ua)
  if (headersIncomplete(attributes)) raise(tally, 'headers_incomplete', BOT.headers_incomplete)
}

function onClient(tally: Tally, attributes: Attributes, tampered: Signal): void {
  const { claims } = attributes
  if (claims.webdriver === true) raise(tally, 'webdriver', BOT.webdriver)
  // The detectors look at overlapping things: together they are one witness.
  if (claims.detectors.length > 0) {
    raise(tally, `botd:${claims.detectors[0]}`, BOT.detector)
    for (let i = 1; i < claims.detectors.length && i < 4; i++) tally.methods.push(`botd:${claims.detectors[i]}`)
  }
  if (permissionsDisagree(attributes)) raise(tally, 'permissions_inconsistent', BOT.permissions_inconsistent)
  if (tampered.state === 'detected') raise(tally, 'tampered_environment', BOT.tampered_environment)
  const gpu = claims.worker?.gpu ?? attributes.gpu
  if (gpu !== null && gpu.class === 'software') raise(tally, 'software_gpu', BOT.software_gpu)
}

/** Needs the tampered signal of the same visit. Without page data only what the User-Agent admits can be told. */
export function detectBot({ attributes }: SignalInput, tampered: Signal): Signal {
  const tally = newTally()
  const { claims } = attributes
  onServer(tally, attributes)
  if (claims.components === 0 && claims.webdriver === null && !claims.detectorsRan) {
    const signal = verdictOf(tally, DETECTED_MIN.bot, CLEAR_MAX, 'server')
    return signal.state === 'detected' ? signal : undetermined()
  }
  onClient(tally, attributes, tampered)
  return verdictOf(tally, DETECTED_MIN.bot, CLEAR_MAX, 'client')
}

/** What kind of bot, null unless detected: a detector's kind, `headless_chrome`, `crawler`, `http_client`, `automation`. */
export function botTypeOf({ attributes }: SignalInput, bot: Signal): string | null {
  if (bot.state !== 'detected') return null
  const { claims, ua } = attributes
  if (headless(attributes)) return 'headless_chrome'
  if (ua.bot)
    return ua.engine === 'other' && ua.os === 'other' && !ua.text.startsWith('Mozilla/') ? 'http_client' : 'crawler'
  const kind = claims.detectorKind
  // The detector of navigator.webdriver names Chrome even on Firefox.
  if (kind !== null && !(kind === 'headless_chrome' && ua.engine !== 'Blink')) return KINDS[kind] ?? kind
  return 'automation'
}
