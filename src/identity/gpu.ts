// Renderer texts of WebGL, made comparable: the same chip gives the same name whatever driver, translation layer or
// browser wrapped it.

import { hash53 } from '../domain/ids.ts'

/** Who made the chip; `software` draws on the CPU, `virtual` belongs to a virtual machine, `masked` says nothing. */
export type GpuClass =
  | 'nvidia'
  | 'amd'
  | 'intel'
  | 'apple'
  | 'qualcomm'
  | 'arm'
  | 'imagination'
  | 'software'
  | 'virtual'
  | 'masked'
  | 'other'
export type GpuApi = 'direct3d' | 'metal' | 'mac-opengl' | 'opengl' | 'vulkan' | null

export interface Gpu {
  readonly name: string
  readonly class: GpuClass
  readonly api: GpuApi
  /** 53-bit hash of the name. */
  readonly hash: number
}

export const GPU_CHARS_MAX = 256
const NAME_CHARS_MAX = 64

function classOf(text: string): GpuClass {
  if (/swiftshader|llvmpipe|softpipe|basic render|software|swrast/.test(text)) return 'software'
  if (/vmware|svga3d|virtualbox|parallels|virgl|virtio|qxl|bluestacks|goldfish|ranchu|android emulator/.test(text)) {
    return 'virtual'
  }
  if (/nvidia|geforce|quadro|tegra/.test(text)) return 'nvidia'
  if (/\bamd\b|radeon|\bati\b/.test(text)) return 'amd'
  if (/intel|\biris\b/.test(text)) return 'intel'
  if (/apple/.test(text)) return 'apple'
  if (/adreno|qualcomm/.test(text)) return 'qualcomm'
  if (/mali|immortalis/.test(text)) return 'arm'
  if (/powervr|imagination/.test(text)) return 'imagination'
  if (/^(mozilla|webkit webgl|webkit|google inc\.?|generic renderer|)$/.test(text)) return 'masked'
  return 'other'
}

function apiOf(text: string): GpuApi {
  if (/direct3d|d3d(9|11|12)/.test(text)) return 'direct3d'
  if (text.includes('metal')) return 'metal'
  if (text.includes('opengl engine')) return 'mac-opengl'
  if (text.includes('vulkan')) return 'vulkan'
  return text.includes('opengl') ? 'opengl' : null
}

/** The second of `ANGLE (vendor, renderer, driver)`, or the whole text. */
function withoutAngle(text: string): string {
  if (!text.startsWith('ANGLE (') || !text.endsWith(')')) return text
  const inner = text.slice(7, -1)
  const first = inner.indexOf(', ')
  if (first < 0) return inner
  const last = inner.lastIndexOf(', ')
  return last > first ? inner.slice(first + 2, last) : inner.slice(first + 2)
}

/** Reads a renderer text of any content. Slow (about 3 µs): remember the answer by text. */
export function parseGpu(full: string): Gpu {
  const text = full.length > GPU_CHARS_MAX ? full.slice(0, GPU_CHARS_MAX) : full
  const lower = text.toLowerCase()
  const kind = classOf(lower)
  let name = withoutAngle(text)
    .replace(/ANGLE Metal Renderer: |, or similar$|\((R|TM|r|tm)\)|\(0x[0-9A-Fa-f]+\)/g, '')
    .replace(/ (Direct3D\d*|OpenGL|Vulkan|vs_\d).*$/, '')
    .replace(/\s+/g, ' ')
    .trim()
  if (kind === 'software') name = /swiftshader/.test(lower) ? 'SwiftShader' : /llvmpipe/.test(lower) ? 'llvmpipe' : name
  if (kind === 'apple') name = name.replace(/^Apple Inc\.?,? /, '')
  name = name.slice(0, NAME_CHARS_MAX)
  return { name, class: kind, api: apiOf(lower), hash: hash53(name) }
}
