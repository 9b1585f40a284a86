// What a User-Agent text says: system, browser family and version, kind of device. Nothing here trusts the text;
// whether it contradicts other evidence is for the signals to say.

import { isbot } from 'isbot'

export type Os = 'Windows' | 'macOS' | 'Linux' | 'ChromeOS' | 'iOS' | 'Android' | 'other'
export type DeviceType = 'desktop' | 'mobile' | 'tablet' | 'other'
export type Engine = 'Blink' | 'Gecko' | 'WebKit' | 'other'

export interface UserAgent {
  readonly text: string
  readonly os: Os
  readonly osVersion: string | null
  /** `Chrome`, `Samsung Internet`, `curl`… HeadlessChrome counts as Chrome. */
  readonly family: string
  readonly version: string | null
  readonly major: number | null
  readonly engine: Engine
  /** Major version of the Chromium inside, whatever the brand around it. */
  readonly chromiumMajor: number | null
  readonly type: DeviceType
  readonly model: string | null
  readonly headless: boolean
  /** The text names itself as a crawler, an HTTP library or another program. */
  readonly bot: boolean
  /** Family and major version, `Chrome 147`. */
  readonly display: string
}

const UA_CHARS_MAX = 1_024

// The first token found wins, so brands stand before the engines whose tokens they also carry.
const BRANDS: readonly (readonly [token: string, family: string])[] = [
  ['EdgA/', 'Edge'],
  ['EdgiOS/', 'Edge'],
  ['Edg/', 'Edge'],
  ['Edge/', 'Edge'],
  ['OPR/', 'Opera'],
  ['OPX/', 'Opera'],
  ['OPT/', 'Opera'],
  ['OPiOS/', 'Opera'],
  ['Opera/', 'Opera'],
  ['SamsungBrowser/', 'Samsung Internet'],
  ['YaBrowser/', 'Yandex'],
  ['Vivaldi/', 'Vivaldi'],
  ['Whale/', 'Whale'],
  ['DuckDuckGo/', 'DuckDuckGo'],
  ['Ddg/', 'DuckDuckGo'],
  ['UCBrowser/', 'UC Browser'],
  ['MiuiBrowser/', 'MIUI Browser'],
  ['HuaweiBrowser/', 'Huawei Browser'],
  ['Silk/', 'Silk'],
  ['QQBrowser/', 'QQ Browser'],
  ['Brave/', 'Brave'],
  ['Electron/', 'Electron'],
  ['FBAV/', 'Facebook'],
  ['Instagram ', 'Instagram'],
  ['GSA/', 'Google App'],
  ['FxiOS/', 'Firefox'],
  ['Focus/', 'Firefox Focus'],
  ['SeaMonkey/', 'SeaMonkey'],
  ['Firefox/', 'Firefox'],
  ['CriOS/', 'Chrome'],
  ['HeadlessChrome/', 'Chrome'],
  ['Chrome/', 'Chrome'],
  ['Chromium/', 'Chrome'],
]

const BROWSERS: ReadonlySet<string> = new Set([
  ...BRANDS.map(([, family]) => family),
  'Android WebView',
  'Internet Explorer',
  'Android Browser',
  'Safari',
  'iOS WebView',
])

/** Whether a family is a browser's of ours. Crawlers and programs call themselves as they like, on any engine. */
export const isKnownBrowser = (family: string): boolean => BROWSERS.has(family)

const WINDOWS: Readonly<Record<string, string>> = { '10.0': '10', '6.3': '8.1', '6.2': '8', '6.1': '7', '6.0': 'Vista' }

function versionAfter(text: string, token: string): string | null {
  const at = text.indexOf(token)
  if (at < 0) return null
  let end = at + token.length
  const from = end
  while (end < text.length && end - from < 32) {
    const c = text.charCodeAt(end)
    if (!((c >= 48 && c <= 57) || c === 46 || c === 95)) break
    end++
  }
  return end === from ? null : text.slice(from, end).replaceAll('_', '.')
}

/** The leading whole number of a version, or null. */
export function majorOf(version: string | null): number | null {
  if (version === null) return null
  const major = Number.parseInt(version, 10)
  return major >= 0 && major < 100_000 ? major : null
}

interface System {
  os: Os
  osVersion: string | null
  type: DeviceType
}

function systemOf(ua: string): System {
  const other: System = { os: 'other', osVersion: null, type: 'other' }
  if (ua.includes('Windows Phone')) return { ...other, type: 'mobile' }
  if (/Tizen|Web0S|PlayStation|Nintendo|Xbox|KAIOS/.test(ua)) return other
  if (ua.includes('Windows NT')) {
    const version = versionAfter(ua, 'Windows NT ')
    return { os: 'Windows', osVersion: version === null ? null : (WINDOWS[version] ?? null), type: 'desktop' }
  }
  if (/\((iPhone|iPad|iPod)/.test(ua)) {
    const version = versionAfter(ua, ' OS ')
    return { os: 'iOS', osVersion: version, type: ua.includes('(iPad') ? 'tablet' : 'mobile' }
  }
  if (ua.includes('Android')) {
    const type = /\bTV\b|BRAVIA|SMART-TV|\bAFT[A-Z]/.test(ua) ? 'other' : /Mobile|Mobi\b/.test(ua) ? 'mobile' : 'tablet'
    return { os: 'Android', osVersion: versionAfter(ua, 'Android '), type }
  }
  if (ua.includes('Macintosh')) return { os: 'macOS', osVersion: versionAfter(ua, 'Mac OS X '), type: 'desktop' }
  if (ua.includes('CrOS'))
    return { os: 'ChromeOS', osVersion: /CrOS \S+ ([\d.]+)/.exec(ua)?.[1] ?? null, type: 'desktop' }
  if (ua.includes('Linux')) return { os: 'Linux', osVersion: null, type: 'desktop' }
  return ua.includes('X11') ? { ...other, type: 'desktop' } : other
}

function browserOf(ua: string, os: Os): { family: string; version: string | null } {
  for (const [token, family] of BRANDS) {
    if (!ua.includes(token)) continue
    if (token === 'Chrome/' && os === 'Android' && ua.includes('; wv)')) {
      return { family: 'Android WebView', version: versionAfter(ua, token) }
    }
    if (token === 'Opera/') return { family, version: versionAfter(ua, 'Version/') ?? versionAfter(ua, token) }
    return { family, version: versionAfter(ua, token) }
  }
  if (/MSIE |Trident\//.test(ua)) {
    return { family: 'Internet Explorer', version: versionAfter(ua, 'MSIE ') ?? versionAfter(ua, 'rv:') }
  }
  if (ua.includes('AppleWebKit/')) {
    if (os === 'Android') return { family: 'Android Browser', version: versionAfter(ua, 'Version/') }
    if (ua.includes('Version/') && ua.includes('Safari/')) {
      return { family: 'Safari', version: versionAfter(ua, 'Version/') }
    }
    if (os === 'iOS') return { family: 'iOS WebView', version: null }
  }
  if (ua.startsWith('Mozilla/')) return { family: 'other', version: null }
  const product = /^([A-Za-z][\w.+-]{0,31})(?:[/ ]v?(\d[\d.]{0,31}))?/.exec(ua)
  return product === null
    ? { family: 'other', version: null }
    : { family: product[1] as string, version: product[2] ?? null }
}

function engineOf(ua: string, os: Os): Engine {
  if (os === 'iOS') return 'WebKit'
  if (/Edge\/|Trident\/|MSIE /.test(ua)) return 'other'
  if (/Chrome\/|Chromium\//.test(ua)) return 'Blink'
  if (/Gecko\/\d.*(Firefox|SeaMonkey|Focus)\//.test(ua)) return 'Gecko'
  return ua.includes('AppleWebKit/') && ua.includes('Version/') ? 'WebKit' : 'other'
}

const CRAWLER =
  /([A-Za-z][\w.-]{0,24}?(?:bot|crawler|spider|externalhit|slurp|preview)[\w-]{0,8})(?:[/ ]v?(\d[\d.]{0,15}))?/i

/** Reads a User-Agent text of any content; about 2 µs, most of it the search for known crawlers. */
export function parseUserAgent(full: string): UserAgent {
  const text = full.length > UA_CHARS_MAX ? full.slice(0, UA_CHARS_MAX) : full
  const { os, osVersion, type } = systemOf(text)
  const bot = text !== '' && isbot(text)
  const headless = text.includes('HeadlessChrome')
  const crawler = bot && !headless ? CRAWLER.exec(text) : null
  const { family, version } =
    crawler === null ? browserOf(text, os) : { family: crawler[1] as string, version: crawler[2] ?? null }
  const major = majorOf(version)
  const model = os === 'Android' ? (/; ([^;)]{2,64}?)(?: Build\/[^;)]*)?(?:; wv)?\)/.exec(text)?.[1] ?? null) : null
  return {
    text,
    os,
    osVersion,
    family,
    version,
    major,
    engine: engineOf(text, os),
    chromiumMajor: majorOf(versionAfter(text, 'Chrome/') ?? versionAfter(text, 'Chromium/')),
    type,
    // Since 2023 the text says `K` for every phone; Firefox and Tablet are no models either.
    model: model === null || /^(K|Mobile|Tablet|rv:.*|Android.*|U|wv)$/.test(model) ? null : model,
    headless,
    bot,
    display: major === null ? family : `${family} ${major}`,
  }
}
