// Made-up devices for tests, with the component shapes real browsers send, and a store as small as one can be.

import type { Component, IdentifyBody, TokenClaims } from '../../src/domain/identify.ts'
import { type Attributes, deviceOf, readAttributes } from '../../src/identity/attributes.ts'
import { matchKeys } from '../../src/identity/keys.ts'
import { type MatchResult, recognise } from '../../src/identity/matcher.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { providerOf } from '../../src/identity/provider.ts'
import { newVisitor, recordVisit, type VisitorState } from '../../src/identity/visitor.ts'

export const CHROME_LINUX =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36'
export const CHROME_WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36'
export const FIREFOX_LINUX = 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0'
export const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1'
export const ANDROID =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Mobile Safari/537.36'

export type Values = Readonly<Record<string, unknown>>

export const componentsOf = (values: Values): Record<string, Component> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value, ms: 1 }]))

export interface Request {
  readonly body: IdentifyBody
  readonly headers: Record<string, string>
  readonly userAgent: string
}

function chromium(ua: string, platform: string, hintPlatform: string, values: Values): Values {
  return {
    userAgent: ua,
    platform,
    vendor: 'Google Inc.',
    userAgentData: {
      platform: hintPlatform,
      platformVersion: '15.0.0',
      model: '',
      architecture: 'x86',
      bitness: '64',
      mobile: false,
      fullVersionList: [{ brand: 'Chromium', version: '147.0.7000.1' }],
    },
    languages: [['cs-CZ']],
    timezone: 'Europe/Prague',
    hardwareConcurrency: 12,
    deviceMemory: 8,
    screenResolution: [2560, 1440],
    devicePixelRatio: 1,
    colorDepth: 24,
    window: { inner: [1200, 800], outer: [1210, 900] },
    touchSupport: { maxTouchPoints: 0, touchEvent: false, touchStart: false },
    canvas: { winding: true, geometry: 'a9b1f30b', text: '2a1224c0', stable: true },
    canvasNoise: 0,
    audio: 124.04347776696522,
    math: { acos: 1.4473588658278522, tan: -1.4214488238747245 },
    fonts: ['Agency FB', 'Calibri', 'Century', 'Haettenschweiler', 'Marlett', 'Pristina'],
    webGlBasics: {
      vendor: 'WebKit',
      renderer: 'WebKit WebGL',
      rendererUnmasked: 'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002503) Direct3D11 vs_5_0 ps_5_0, D3D11)',
    },
    permissions: { notifications: 'prompt', notificationPermission: 'default' },
    incognito: { isPrivate: false, browserName: 'Chrome' },
    lies: [],
    evalLength: 33,
    ...values,
  }
}

/** What a browser with these languages asks for. */
const acceptLanguageOf = ({ languages }: Values): string =>
  Array.isArray(languages) ? `${languages.flat()[0]},en;q=0.9` : 'en-US,en;q=0.9'

export function request(ua: string, values: Values, more: Partial<IdentifyBody> = {}, headers: Values = {}): Request {
  return {
    userAgent: ua,
    headers: { 'user-agent': ua, accept: '*/*', 'accept-language': acceptLanguageOf(values), ...headers } as Record<
      string,
      string
    >,
    body: {
      components: componentsOf(values),
      automation: { webdriver: false, detectors: { webDriver: { bot: false } } },
      ...more,
    },
  }
}

/** A Windows desktop with Chrome; `values` replace components. */
export function windowsPc(values: Values = {}, more: Partial<IdentifyBody> = {}, headers: Values = {}): Request {
  const all = chromium(CHROME_WINDOWS, 'Win32', 'Windows', values)
  const worker = {
    userAgent: all.userAgent,
    platform: all.platform,
    languages: (all.languages as string[][])[0],
    timezone: all.timezone,
    hardwareConcurrency: all.hardwareConcurrency,
    deviceMemory: all.deviceMemory,
    webGlRenderer: (all.webGlBasics as Values | null | undefined)?.rendererUnmasked,
  }
  const hints = { 'sec-ch-ua': '"Chromium";v="147", "Google Chrome";v="147"', 'sec-ch-ua-platform': '"Windows"' }
  return request(CHROME_WINDOWS, { worker, ...all }, more, { ...hints, ...headers })
}

/** Chromium on a Linux machine without fonts or GPU, as containers have it. */
export function bareLinux(values: Values = {}, more: Partial<IdentifyBody> = {}, ua = CHROME_LINUX): Request {
  const rest = chromium(ua, 'Linux x86_64', 'Linux', {
    languages: [['en-US']],
    timezone: 'UTC',
    hardwareConcurrency: 2,
    deviceMemory: 16,
    screenResolution: [1920, 1080],
    fonts: [],
    webGlBasics: undefined,
    ...values,
  })
  return request(ua, rest, more, { 'sec-ch-ua': '"Chromium";v="147"', 'sec-ch-ua-platform': '"Linux"' })
}

export function firefox(values: Values = {}): Request {
  return request(FIREFOX_LINUX, {
    userAgent: FIREFOX_LINUX,
    userAgentData: null,
    platform: 'Linux x86_64',
    vendor: '',
    languages: [['en-US'], ['en-US', 'en']],
    timezone: 'UTC',
    hardwareConcurrency: 2,
    screenResolution: [1920, 1080],
    devicePixelRatio: 1,
    touchSupport: { maxTouchPoints: 0, touchEvent: false, touchStart: false },
    canvas: { winding: true, geometry: '45f589db', text: '690a60e8', stable: true },
    canvasNoise: 0,
    audio: 35.7,
    fonts: ['Bitstream Vera Sans Mono'],
    webGlBasics: { renderer: 'Radeon R9 200 Series, or similar', rendererUnmasked: '' },
    permissions: { notifications: 'prompt', notificationPermission: 'default' },
    incognito: { isPrivate: false, browserName: 'Firefox' },
    lies: [],
    evalLength: 37,
    ...values,
  })
}

export function iphone(values: Values = {}, ua = IPHONE): Request {
  return request(ua, {
    userAgent: ua,
    userAgentData: null,
    platform: 'iPhone',
    vendor: 'Apple Computer, Inc.',
    languages: [['en-US']],
    timezone: 'Europe/Prague',
    hardwareConcurrency: 4,
    screenResolution: [390, 844],
    devicePixelRatio: 3,
    touchSupport: { maxTouchPoints: 5, touchEvent: true, touchStart: true },
    canvas: { winding: true, geometry: '77aa', text: '88bb', stable: true },
    audio: 124.0434488439787,
    fonts: ['Gill Sans', 'Helvetica Neue', 'Menlo'],
    webGlBasics: { renderer: 'Apple GPU', rendererUnmasked: 'Apple GPU' },
    incognito: { isPrivate: false, browserName: 'Safari' },
    lies: [],
    evalLength: 37,
    ...values,
  })
}

const parsers = openParsers(64)
export const attributesOf = (r: Request): Attributes => readAttributes(r.body, r.headers, r.userAgent, parsers)

/** A page's client: what it sends and what it keeps. */
export interface Visited {
  readonly visitor: VisitorState
  readonly recognition: MatchResult
  readonly token: TokenClaims
}

/** Remembers visitors by their keys, as the engine does, without bounds. */
export function openStore() {
  const visitors = new Map<string, VisitorState>()
  const index = new Map<string, Set<string>>()
  let drawn = 0
  let clockMs = Date.UTC(2026, 10, 20)
  const isExact = (key: string): boolean => key[0] === 'e'
  const under = (key: string): VisitorState[] =>
    [...(index.get(key) ?? [])].map((id) => visitors.get(id) as VisitorState)

  return {
    visitors,
    wait(ms: number) {
      clockMs += ms
    },
    visit(r: Request, ip: string, token: TokenClaims | null = null): Visited {
      clockMs += 60_000
      const attributes = attributesOf(r)
      const keys = matchKeys(attributes, ip, providerOf(ip, null))
      const recognition = recognise({
        attributes,
        ip,
        atMs: clockMs,
        token,
        tokenVisitor: token === null ? null : (visitors.get(token.visitorId) ?? null),
        exact: keys.filter(isExact).flatMap(under),
        linked: keys.filter((key) => !isExact(key)).flatMap(under),
        incognito: attributes.incognito,
      })
      const visitor = recognition.visitor ?? newVisitor(`pv_${String(drawn++).padStart(20, '0')}`, clockMs)
      recordVisit(visitor, {
        atMs: clockMs,
        ip,
        attributes,
        device: deviceOf(attributes, r.body),
        method: recognition.method,
        token: recognition.method === 'token' ? token : null,
        generation: recognition.generation,
        confidence: recognition.confidence,
        linkedId: null,
      })
      visitors.set(visitor.id, visitor)
      for (const key of keys) {
        const ids = index.get(key) ?? new Set()
        index.set(key, ids.add(visitor.id))
      }
      return {
        visitor,
        recognition,
        token: { visitorId: visitor.id, generation: recognition.generation, issuedAt: clockMs },
      }
    },
  }
}
