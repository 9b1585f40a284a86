// From a moment to what the browser sends: an identify body in the component vocabulary whose parts agree with each other,
// and its headers. What privacy modes make up (Firefox, Safari, Brave) is made up here, as measured or documented.

import type { IdentifyBody } from '../../src/domain/identify.ts'
import { hash32 } from '../../src/domain/ids.ts'
import { rng } from '../../test/helpers/rng.ts'
import { type Introduction, introduce } from './browsers.ts'
import { isMobile, type World } from './devices.ts'
import { type Moment, trainOf } from './life.ts'
import type { Rendering } from './releases.ts'
import { traitComponents } from './traits.ts'
import type { Card } from './values.ts'

export interface Sent {
  readonly body: IdentifyBody
  readonly headers: Readonly<Record<string, string>>
}

type Component = { readonly value: unknown; readonly ms: number }

const hex8 = (text: string): string => hash32(text).toString(16).padStart(8, '0')
const longHash = (text: string): string => [0, 1, 2, 3].map((i) => hex8(`${i}/${text}`)).join('')

/** Sums of rendered samples, near what the engines give. */
const AUDIO_BASE = { Blink: 124.04347, Gecko: 35.7499, WebKit: 124.04344 } as const
const EVAL_LENGTH = { Blink: 33, Gecko: 37, WebKit: 37 } as const
const AUDIO_VARIANTS = 3

/** Firefox files cards under a few names. */
function geckoRenderer({ renderer }: Card): string {
  const windows = renderer.includes('Direct3D')
  const wrap = (vendor: string, name: string) =>
    windows ? `ANGLE (${vendor}, ${name} Direct3D11 vs_5_0 ps_5_0), or similar` : `${name}, or similar`
  if (/nvidia|geforce|quadro/i.test(renderer)) {
    return wrap('NVIDIA', /RTX|GTX (9|1\d)|GTX 16/.test(renderer) ? 'NVIDIA GeForce GTX 980' : 'NVIDIA GeForce GTX 480')
  }
  if (/amd|radeon/i.test(renderer)) {
    return wrap('AMD', /RX|Vega|Graphics/.test(renderer) ? 'Radeon R9 200 Series' : 'Radeon HD 5850')
  }
  if (/intel/i.test(renderer)) {
    return wrap('Intel', /UHD|Iris|Xe|Arc/.test(renderer) ? 'Intel(R) HD Graphics 400' : 'Intel(R) HD Graphics')
  }
  if (/apple/i.test(renderer)) return 'Apple M1, or similar'
  if (/adreno/i.test(renderer)) return `Adreno (TM) ${/ (\d)/.exec(renderer)?.[1] ?? 5}xx, or similar`
  return /mali/i.test(renderer) ? 'Mali-T880, or similar' : 'Generic Renderer, or similar'
}

function webGl({ device }: Moment, engine: Introduction['engine']): Record<string, string> {
  const { card } = device.hardware
  if (device.resists) {
    const version = { version: 'WebGL 1.0', shadingLanguageVersion: 'WebGL GLSL ES 1.0' }
    return { vendor: 'Mozilla', renderer: 'Mozilla', vendorUnmasked: '', rendererUnmasked: '', ...version }
  }
  if (engine === 'Gecko') {
    return {
      vendor: 'Mozilla',
      renderer: geckoRenderer(card),
      vendorUnmasked: '',
      rendererUnmasked: '',
      version: 'WebGL 1.0',
      shadingLanguageVersion: 'WebGL GLSL ES 1.0',
    }
  }
  const apple = engine === 'WebKit'
  return {
    vendor: 'WebKit',
    renderer: 'WebKit WebGL',
    vendorUnmasked: apple ? 'Apple Inc.' : card.vendor,
    rendererUnmasked: apple ? 'Apple GPU' : card.renderer,
    version: apple ? 'WebGL 1.0' : 'WebGL 1.0 (OpenGL ES 2.0 Chromium)',
    shadingLanguageVersion: apple ? 'WebGL GLSL ES 1.0 (1.0)' : 'WebGL GLSL ES 1.0 (OpenGL ES GLSL ES 1.0 Chromium)',
  }
}

interface Drawn {
  readonly canvas: { winding: boolean; geometry: string; text: string; stable: boolean }
  readonly noisePixels: number
  readonly audio: number
}

function drawn(moment: Moment, engine: Introduction['engine'], world: World, rendering: Rendering): Drawn {
  const { device, version, isPrivate, driver, screen, session } = moment
  const train = trainOf(device)
  const card = engine === 'WebKit' ? `${device.platform}/Apple` : device.hardware.card.renderer
  const epoch = rendering.canvas(train, card, version)
  const base = `${world.seed}/${train}/${device.platform}/${card}/${driver}`
  // Letters are smoothed differently on screens of high density.
  const dense = screen.ratio >= 1.5
  let geometry = hex8(`${base}/geometry`)
  let text = hex8(`${base}/text/${epoch}/${dense}`)
  const family = `${engine}/${device.platform}/${device.hardware.hints.architecture}`
  const sound = `${world.seed}/${family}/${rendering.audio(train, version)}/${driver % AUDIO_VARIANTS}`
  let audio = AUDIO_BASE[engine] + (hash32(sound) % 10_000) * 1e-9
  const bySession = `${world.seed}/${device.index}/${session}`
  const random = engine === 'Gecko' || device.browser === 'brave' || (engine === 'WebKit' && isPrivate)
  if (random) {
    geometry = hex8(`${bySession}/geometry`)
    text = hex8(`${bySession}/text`)
  }
  if (random && engine !== 'Gecko') audio += (hash32(bySession) % 10_000) * 1e-8
  const noisePixels = device.resists ? 256 : device.browser === 'brave' ? 1 + (hash32(bySession) % 40) : 0
  return { canvas: { winding: true, geometry, text, stable: !device.resists }, noisePixels, audio }
}

/** Core count and memory as the browser tells them; null where it does not. */
function capacity(moment: Moment, engine: Introduction['engine']): { cores: number; memory: number | null } {
  const { device, isPrivate, session } = moment
  const { cores, memory, platform } = device.hardware
  if (engine === 'WebKit') return { cores: platform === 'mac' ? 8 : cores, memory: null }
  // Measured: 2 became 4 in private windows and under protection.
  if (engine === 'Gecko') return { cores: isPrivate || device.resists ? (cores >= 8 ? 8 : 4) : cores, memory: null }
  if (device.browser !== 'brave') return { cores, memory }
  const r = rng(hash32(`${device.index}/brave/${session}`))
  return { cores: 2 + r.int(Math.max(1, cores - 1)), memory: r.pick([2, 4, 8]) }
}

interface Shown {
  readonly size: readonly [number, number]
  readonly ratio: number
  readonly depth: number
}

function shownScreen({ device, screen, zoom }: Moment): Shown {
  // resistFingerprinting rounds the window and calls it the screen.
  if (device.resists) return { size: [1_000 + 200 * (device.index % 4), 900], ratio: 2, depth: 24 }
  return { size: [screen.width, screen.height], ratio: screen.ratio * zoom, depth: screen.depth }
}

function wrap(values: Readonly<Record<string, unknown>>): Record<string, Component> {
  const components: Record<string, Component> = {}
  for (const name of Object.keys(values)) components[name] = { value: values[name], ms: 1 }
  return components
}

/** Body without storageToken and mock, and the headers of the request. */
export function present(moment: Moment, world: World, rendering: Rendering): Sent {
  const { device, isPrivate } = moment
  const who = introduce(moment)
  const { engine } = who
  const { canvas, noisePixels, audio } = drawn(moment, engine, world, rendering)
  const { cores, memory } = capacity(moment, engine)
  const { size, ratio, depth } = shownScreen(moment)
  const gl = webGl(moment, engine)
  const languages = device.resists ? ['en-US', 'en'] : moment.languages
  const timezone = device.resists ? 'Atlantic/Reykjavik' : moment.zone
  const touches = device.resists ? 0 : device.hardware.touchPoints
  const first = languages[0] ?? 'en-US'
  const headers = device.resists ? { ...who.headers, 'accept-language': 'en-US,en;q=0.5' } : who.headers
  const [width, height] = size
  const glName = engine === 'Gecko' ? gl.renderer : gl.rendererUnmasked
  return {
    headers,
    body: {
      sdk: { name: 'js', version: '1.0.0' },
      url: 'https://shop.example/login',
      automation: { webdriver: false, detectors: { webDriver: { bot: false }, userAgent: { bot: false } } },
      components: wrap({
        userAgent: who.userAgent,
        userAgentData: who.hints,
        platform: who.platform,
        vendor: who.vendor,
        languages: engine === 'Blink' ? [[first]] : [[first], languages],
        timezone,
        dateTimeLocale: first,
        hardwareConcurrency: cores,
        deviceMemory: memory ?? undefined,
        architecture: device.hardware.hints.architecture === 'arm' || isMobile(device.platform) ? 127 : 255,
        screenResolution: size,
        devicePixelRatio: ratio,
        colorDepth: depth,
        colorGamut: moment.screen.hdr ? 'p3' : 'srgb',
        hdr: moment.screen.hdr,
        window: { inner: [width, height - 140], outer: [width, height - 40] },
        touchSupport: { maxTouchPoints: touches, touchEvent: touches > 0, touchStart: touches > 0 },
        canvas,
        canvasNoise: noisePixels,
        audio,
        math: { acos: 1.4473588658278522, tan: engine === 'Gecko' ? -1.4214488238747243 : -1.4214488238747245 },
        webGlBasics: gl,
        webGlExtensions: { extensions: ['OES_texture_float'], parametersHash: longHash(glName ?? '') },
        ...traitComponents({ ...moment, platform: device.platform, engine }),
        fonts: device.resists ? [] : moment.fonts,
        plugins: [{ name: 'PDF Viewer' }],
        storage: {
          quota: isPrivate ? 1_073_741_824 : 10_737_418_240,
          cookies: true,
          localStorage: true,
          indexedDB: true,
        },
        permissions: { notifications: 'prompt', notificationPermission: 'default' },
        incognito: { isPrivate, browserName: who.incognitoName },
        worker: {
          userAgent: who.userAgent,
          platform: who.platform,
          languages: engine === 'Blink' ? [first] : languages,
          timezone,
          hardwareConcurrency: cores,
          deviceMemory: memory,
          webGlRenderer: glName ?? null,
        },
        lies: [],
        evalLength: EVAL_LENGTH[engine],
      }),
    },
  }
}
