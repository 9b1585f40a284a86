// How a browser introduces itself: User-Agent, client hints in page and headers, and the headers around them.

import type { Device } from './devices.ts'
import type { Moment } from './life.ts'
import { chromiumOfSamsung, safariVersion } from './releases.ts'
import type { Hints } from './values.ts'

export interface Introduction {
  readonly userAgent: string
  readonly platform: string
  readonly vendor: string
  readonly engine: 'Blink' | 'Gecko' | 'WebKit'
  /** `navigator.userAgentData`, null where there is none. */
  readonly hints: (Hints & { mobile: boolean; fullVersionList: { brand: string; version: string }[] }) | null
  readonly headers: Readonly<Record<string, string>>
  /** The name the private-window test gives. */
  readonly incognitoName: string
}

const SYSTEM: Readonly<Record<Device['platform'], string>> = {
  windows: 'Windows NT 10.0; Win64; x64',
  mac: 'Macintosh; Intel Mac OS X 10_15_7',
  linux: 'X11; Linux x86_64',
  chromeos: 'X11; CrOS x86_64 14541.0.0',
  android: 'Linux; Android 10; K',
  ios: '',
}
const GECKO_SYSTEM: Readonly<Record<string, string>> = {
  windows: 'Windows NT 10.0; Win64; x64',
  mac: 'Macintosh; Intel Mac OS X 10.15',
  linux: 'X11; Linux x86_64',
  android: 'Android 15; Mobile',
}
const NAVIGATOR_PLATFORM: Readonly<Record<Device['platform'], string>> = {
  windows: 'Win32',
  mac: 'MacIntel',
  linux: 'Linux x86_64',
  chromeos: 'Linux x86_64',
  android: 'Linux armv81',
  ios: 'iPhone',
}
const BRANDS: Readonly<Record<string, string>> = {
  chrome: 'Google Chrome',
  edge: 'Microsoft Edge',
  brave: 'Brave',
  samsung: 'Samsung Internet',
}
const WINDOWS_BUILDS = ['10.0.0', '13.0.0', '14.0.0', '15.0.0', '19.0.0', '22.0.0']

/** The platform version of client hints after so many updates of the system. */
export function updated(device: Device, osUpdates: number, version: number): string {
  const { platformVersion } = device.hardware.hints
  if (device.platform === 'chromeos') return `${16_093 + version * 60}.0.0`
  if (osUpdates === 0 || platformVersion === '') return platformVersion
  if (device.platform === 'windows') {
    const at = Math.max(0, WINDOWS_BUILDS.indexOf(platformVersion))
    return WINDOWS_BUILDS[Math.min(at + osUpdates, WINDOWS_BUILDS.length - 1)] ?? platformVersion
  }
  const [major = 0, minor = 0, patch = 0] = platformVersion.split('.').map(Number)
  if (device.platform === 'android') return `${major + osUpdates}.0.0`
  return device.platform === 'mac' ? `${major}.${minor + osUpdates}.0` : `${major}.${minor + osUpdates}.${patch}`
}

/** `de-DE,de;q=0.9,en-US;q=0.8` as browsers write it. */
const acceptLanguage = (languages: readonly string[]): string =>
  languages.map((language, i) => (i === 0 ? language : `${language};q=${(1 - i * 0.1).toFixed(1)}`)).join(',')

function commonHeaders(userAgent: string, languages: readonly string[]): Record<string, string> {
  return {
    'user-agent': userAgent,
    accept: '*/*',
    'accept-encoding': 'gzip, deflate, br, zstd',
    'accept-language': acceptLanguage(languages),
    'sec-fetch-site': 'same-site',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
  }
}

function chromium({ device, version, osUpdates, languages }: Moment): Introduction {
  const { platform, browser, hardware } = device
  const major = browser === 'samsung' ? chromiumOfSamsung(version) : version
  const samsung = browser === 'samsung' ? `SamsungBrowser/${version}.0 ` : ''
  const mobile = platform === 'android' ? 'Mobile ' : ''
  const edge = browser === 'edge' ? ` Edg/${major}.0.0.0` : ''
  const userAgent = `Mozilla/5.0 (${SYSTEM[platform]}) AppleWebKit/537.36 (KHTML, like Gecko) ${samsung}Chrome/${major}.0.0.0 ${mobile}Safari/537.36${edge}`
  const brand = BRANDS[browser] ?? 'Google Chrome'
  const own = browser === 'samsung' ? version : major
  const full = `${major}.0.${4_500 + major * 22}.${60 + (major % 7) * 11}`
  const hints = hardware.hints
  const headers = commonHeaders(userAgent, languages)
  headers['sec-ch-ua'] = `"${brand}";v="${own}", "Not.A/Brand";v="8", "Chromium";v="${major}"`
  headers['sec-ch-ua-mobile'] = mobile === '' ? '?0' : '?1'
  headers['sec-ch-ua-platform'] = `"${hints.platform}"`
  return {
    userAgent,
    platform: NAVIGATOR_PLATFORM[platform],
    vendor: 'Google Inc.',
    engine: 'Blink',
    hints: {
      ...hints,
      platformVersion: updated(device, osUpdates, version),
      mobile: mobile !== '',
      fullVersionList: [
        { brand, version: own === major ? full : `${own}.0.0.0` },
        { brand: 'Not.A/Brand', version: '8.0.0.0' },
        { brand: 'Chromium', version: full },
      ],
    },
    headers,
    incognitoName: browser === 'edge' ? 'Edge' : browser === 'brave' ? 'Brave' : 'Chrome',
  }
}

function gecko({ device, version, languages }: Moment): Introduction {
  const { platform } = device
  const trail = platform === 'android' ? `${version}.0` : '20100101'
  const userAgent = `Mozilla/5.0 (${GECKO_SYSTEM[platform]}; rv:${version}.0) Gecko/${trail} Firefox/${version}.0`
  return {
    userAgent,
    platform: platform === 'android' ? 'Linux aarch64' : NAVIGATOR_PLATFORM[platform],
    vendor: '',
    engine: 'Gecko',
    hints: null,
    headers: commonHeaders(userAgent, languages),
    incognitoName: 'Firefox',
  }
}

function webkit({ device, version, languages }: Moment): Introduction {
  const { platform, browser, hardware } = device
  const said = safariVersion(version)
  const base = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'
  const desktop = platform === 'mac' || (hardware.pad && browser === 'safari')
  const phone = hardware.pad ? 'iPad; CPU OS' : 'iPhone; CPU iPhone OS'
  // Safari says 18_7 for ever, Chrome tells the system's real version.
  const userAgent = desktop
    ? `Mozilla/5.0 (${SYSTEM.mac}) ${base} Version/${said} Safari/605.1.15`
    : browser === 'chrome'
      ? `Mozilla/5.0 (${phone} ${said.replace('.', '_')}_0 like Mac OS X) ${base} CriOS/${140 + version}.0.7727.99 Mobile/15E148 Safari/604.1`
      : `Mozilla/5.0 (${phone} 18_7 like Mac OS X) ${base} Version/${said} Mobile/15E148 Safari/604.1`
  const pad = hardware.pad ? 'iPad' : 'iPhone'
  return {
    userAgent,
    platform: desktop ? 'MacIntel' : pad,
    vendor: 'Apple Computer, Inc.',
    engine: 'WebKit',
    hints: null,
    headers: commonHeaders(userAgent, languages),
    incognitoName: 'Safari',
  }
}

export function introduce(moment: Moment): Introduction {
  const { platform, browser } = moment.device
  if (platform === 'ios' || browser === 'safari') return webkit(moment)
  return browser === 'firefox' ? gecko(moment) : chromium(moment)
}
