// Made-up devices and what their pages send: many unlike each other, in the shapes and sizes of real browsers.

import { firefox, iphone, type Request, windowsPc } from './recognition.ts'
import type { Rng } from './rng.ts'

export interface Device {
  readonly number: number
  readonly request: Request
  readonly ip: string
  readonly account: string | null
  /** What the browser keeps; null until the first answer. */
  token: string | null
}

const GPUS = [
  ...[1650, 2060, 2070, 3050, 3060, 3070, 4060, 4070, 4090, 5070].map((n) => `NVIDIA, NVIDIA GeForce RTX ${n}`),
  ...[570, 580, 5700, 6600, 6700, 7600, 7900].map((n) => `AMD, AMD Radeon RX ${n}`),
  ...['UHD Graphics 620', 'UHD Graphics 770', 'Iris(R) Xe Graphics', 'Arc(TM) A770'].map((n) => `Intel, Intel(R) ${n}`),
]
export const SCREENS = [
  [1920, 1080],
  [2560, 1440],
  [1366, 768],
  [1536, 864],
  [3840, 2160],
  [1440, 900],
] as const
const PHONES = [
  [390, 844],
  [393, 852],
  [430, 932],
  [375, 667],
  [414, 896],
] as const
const ZONES = ['Europe/Prague', 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'America/Sao_Paulo', 'UTC']
const LANGUAGES = ['cs-CZ', 'de-DE', 'en-US', 'en-GB', 'ja-JP', 'pt-BR', 'fr-FR']
const FONTS =
  'Agency FB,Arial Unicode MS,Bauhaus 93,Calibri,Century,Gill Sans,Haettenschweiler,Lucida Bright,Marlett,Pristina'
const EXTENSIONS = [
  ...['ANGLE_instanced_arrays', 'EXT_blend_minmax', 'EXT_clip_control', 'EXT_color_buffer_half_float'],
  ...['EXT_depth_clamp', 'EXT_float_blend', 'EXT_frag_depth', 'EXT_shader_texture_lod', 'EXT_sRGB'],
  ...['EXT_texture_compression_bptc', 'EXT_texture_compression_rgtc', 'EXT_texture_filter_anisotropic'],
  ...['KHR_parallel_shader_compile', 'OES_element_index_uint', 'OES_standard_derivatives', 'OES_texture_float'],
  ...['WEBGL_compressed_texture_s3tc', 'WEBGL_debug_renderer_info', 'WEBGL_lose_context', 'WEBGL_multi_draw'],
]

const hex = (random: Rng, bytes: number): string => Buffer.from(random.bytes(bytes)).toString('hex')

function desktop(random: Rng) {
  const [width, height] = random.pick(SCREENS)
  const mimeTypes = [{ type: 'application/pdf', suffixes: 'pdf' }]
  const plugins = ['PDF', 'Chrome PDF', 'Chromium PDF', 'Microsoft Edge PDF', 'WebKit built-in PDF']
  return {
    hardwareConcurrency: random.pick([4, 8, 12, 16, 24]),
    screenResolution: [width, height],
    window: { inner: [width - random.int(200), height - 120], outer: [width, height - 40] },
    devicePixelRatio: random.pick([1, 1.25, 1.5, 2]),
    languages: [[random.pick(LANGUAGES)]],
    timezone: random.pick(ZONES),
    canvas: { winding: true, geometry: hex(random, 16), text: hex(random, 16), stable: true },
    audio: 124 + random.float(),
    fonts: FONTS.split(',').filter(() => random.chance(0.7)),
    plugins: plugins.map((name) => ({ name, description: 'Portable Document Format', mimeTypes })),
    webGlExtensions: {
      extensions: EXTENSIONS.filter(() => random.chance(0.9)),
      parametersHash: hex(random, 16),
    },
    mediaDevices: { audioinput: random.int(3), audiooutput: random.int(3), videoinput: random.int(2) },
    storage: { quota: 1e9 + random.int(1e9), cookies: true, localStorage: true, indexedDB: true },
  }
}

function pageOf(random: Rng): Request {
  const kind = random.float()
  if (kind < 0.6) {
    const gpu = `ANGLE (${random.pick(GPUS)} (0x0000${hex(random, 2)}) Direct3D11 vs_5_0 ps_5_0, D3D11)`
    const webGlBasics = { vendor: 'WebKit', renderer: 'WebKit WebGL', rendererUnmasked: gpu }
    return windowsPc({ ...desktop(random), deviceMemory: random.pick([4, 8, 16]), webGlBasics })
  }
  if (kind < 0.8) {
    const renderer = `${random.pick(GPUS).split(', ')[1]}, or similar`
    return firefox({ ...desktop(random), webGlBasics: { renderer, rendererUnmasked: '' } })
  }
  const { plugins: _, ...values } = desktop(random)
  return iphone({
    ...values,
    hardwareConcurrency: 4,
    screenResolution: random.pick(PHONES),
    fonts: ['Gill Sans', 'Menlo'],
  })
}

export function makeDevice(random: Rng, number: number): Device {
  return {
    number,
    request: pageOf(random),
    ip: `${random.pick([81, 93, 109, 185])}.${random.int(256)}.${random.int(256)}.${1 + random.int(254)}`,
    account: random.chance(0.5) ? `user_${random.int(400)}` : null,
    token: null,
  }
}
