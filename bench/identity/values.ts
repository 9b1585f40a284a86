// What real browsers answer, from the network of `fingerprint-generator` (Apify, Apache-2.0): for each kind of device the
// values of an attribute with their shares. One half of the rarer values is used, so that the other half stays unseen.

import { readFileSync } from 'node:fs'
import { inflateRawSync } from 'node:zlib'
import { hash32 } from '../../src/domain/ids.ts'
import type { Rng } from '../../test/helpers/rng.ts'

export type Kind = 'windows' | 'mac' | 'safari' | 'linux' | 'chromeos' | 'android' | 'iphone'
export type Half = 'even' | 'odd'

export interface Screen {
  readonly width: number
  readonly height: number
  readonly ratio: number
  readonly depth: number
  readonly hdr: boolean
}
export interface Card {
  readonly vendor: string
  readonly renderer: string
}
export interface Hints {
  readonly platform: string
  readonly platformVersion: string
  readonly model: string
  readonly architecture: string
  readonly bitness: string
}

/** Values with growing sums of their shares, the last 1. */
export interface Shares<T> {
  readonly values: readonly T[]
  readonly sums: Float64Array
}

export interface Values {
  readonly screens: Readonly<Record<Kind, Shares<Screen>>>
  readonly cards: Readonly<Record<Kind, Shares<Card>>>
  readonly fonts: Readonly<Record<Kind, Shares<readonly string[]>>>
  readonly hints: Readonly<Record<Kind, Shares<Hints>>>
  readonly cores: Readonly<Record<Kind, Shares<number>>>
  readonly memory: Readonly<Record<Kind, Shares<number>>>
  readonly touchPoints: Readonly<Record<Kind, Shares<number>>>
}

const KINDS: readonly Kind[] = ['windows', 'mac', 'safari', 'linux', 'chromeos', 'android', 'iphone']
const FILE = 'data_files/fingerprint-network-definition.zip'
const HINT_NAMES: Readonly<Partial<Record<Kind, string>>> = {
  windows: 'Windows',
  mac: 'macOS',
  linux: 'Linux',
  chromeos: 'Chrome OS',
  android: 'Android',
}
/** A value this common belongs to both halves: without it a half would be another kind of world. */
const COMMON_SHARE = 0.05

interface Node {
  readonly name: string
  readonly conditionalProbabilities: Readonly<Record<string, unknown>>
}

/** The only file of a zip archive. */
function unzipOne(archive: Buffer): Buffer {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  const entry = archive.readUInt32LE(end + 16)
  const packedBytes = archive.readUInt32LE(entry + 20)
  const local = archive.readUInt32LE(entry + 42)
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
  return inflateRawSync(archive.subarray(start, start + packedBytes))
}

function kindOf(userAgent: string): Kind | null {
  if (/Headless|bot/i.test(userAgent)) return null
  if (userAgent.includes('iPhone')) return 'iphone'
  if (userAgent.includes('Android')) return 'android'
  if (userAgent.includes('Macintosh')) return userAgent.includes('Chrome/') ? 'mac' : 'safari'
  if (userAgent.includes('CrOS')) return 'chromeos'
  if (userAgent.includes('Windows')) return 'windows'
  return userAgent.includes('Linux') ? 'linux' : null
}

/** A stringified value as JSON; undefined when it is missing or no such thing. */
function unpack(text: string): unknown {
  if (!text.startsWith('*STRINGIFIED*')) return undefined
  return JSON.parse(text.slice('*STRINGIFIED*'.length))
}

type Told = Readonly<Record<string, unknown>>
const asObject = (value: unknown): Told | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Told) : null

function screenOf(value: unknown): Screen | null {
  const s = asObject(value)
  const { width, height, devicePixelRatio, colorDepth, hasHDR } = s ?? {}
  if (typeof width !== 'number' || typeof height !== 'number' || typeof devicePixelRatio !== 'number') return null
  if (width < 320 || height < 320 || (width === 800 && height === 600)) return null
  return { width, height, ratio: devicePixelRatio, depth: Number(colorDepth ?? 24), hdr: hasHDR === true }
}

/** Among those who were measured were some who pretended to another system: their cards are not of this one. */
const isElsewhere = (renderer: string, kind: Kind): boolean =>
  (renderer.includes('Direct3D') && kind !== 'windows') ||
  (/OpenGL Engine|Metal/.test(renderer) && kind !== 'mac' && kind !== 'safari' && kind !== 'iphone')

function cardOf(value: unknown, kind: Kind): Card | null {
  const { renderer, vendor } = asObject(value) ?? {}
  if (typeof renderer !== 'string' || typeof vendor !== 'string' || isElsewhere(renderer, kind)) return null
  return /swiftshader|llvmpipe|virtual|vmware/i.test(renderer) ? null : { vendor, renderer }
}

function hintsOf(value: unknown, kind: Kind): Hints | null {
  const { platformVersion, model, architecture, bitness, platform } = asObject(value) ?? {}
  if (typeof platformVersion !== 'string' || typeof platform !== 'string') return null
  if (platform !== HINT_NAMES[kind]) return null
  return {
    platform,
    platformVersion,
    model: String(model ?? ''),
    architecture: String(architecture ?? ''),
    bitness: String(bitness ?? ''),
  }
}

const fontsOf = (value: unknown): string[] | null => (Array.isArray(value) ? value.map(String) : null)
const numberOf = (value: unknown): number | null =>
  typeof value === 'number' || (typeof value === 'string' && value !== '') ? Number(value) : null
const coresOf = (value: unknown): number | null => {
  const cores = numberOf(value)
  return cores === null || !(cores >= 2 && cores <= 128) ? null : cores
}

/** Weights by kind and value; kinds never heard of stay empty. */
function weigh<T>(
  node: Node,
  agents: ReadonlyMap<string, number>,
  read: (value: unknown, kind: Kind) => T | null,
  half: Half | null,
): Record<Kind, Shares<T>> {
  const weights = Object.fromEntries(KINDS.map((kind) => [kind, new Map<string, number>()])) as Record<
    Kind,
    Map<string, number>
  >
  for (const [agent, dist] of Object.entries(node.conditionalProbabilities.deeper as Record<string, Told>)) {
    const kind = kindOf(agent)
    if (kind === null) continue
    for (const [text, p] of Object.entries(dist)) {
      const value = typeof p === 'number' ? read(unpack(text), kind) : null
      if (value === null) continue
      const key = JSON.stringify(value)
      weights[kind].set(key, (weights[kind].get(key) ?? 0) + (p as number) * (agents.get(agent) ?? 0))
    }
  }
  return Object.fromEntries(KINDS.map((kind) => [kind, sharesOf<T>(weights[kind], half)])) as Record<Kind, Shares<T>>
}

function sharesOf<T>(weights: ReadonlyMap<string, number>, half: Half | null): Shares<T> {
  let total = 0
  for (const weight of weights.values()) total += weight
  const parity = half === 'odd' ? 1 : 0
  const kept = [...weights].filter(
    ([key, weight]) => half === null || weight / total >= COMMON_SHARE || hash32(key) % 2 === parity,
  )
  return cumulate(
    kept.map(([key]) => JSON.parse(key) as T),
    kept.map(([, weight]) => weight),
  )
}

/** Shares from weights of any sum. */
export function cumulate<T>(values: readonly T[], weights: readonly number[]): Shares<T> {
  const sums = Float64Array.from(weights)
  let sum = 0
  for (let i = 0; i < sums.length; i++) {
    sum += weights[i] as number
    sums[i] = sum
  }
  for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] as number) / sum
  return { values, sums }
}

/** The value at a place in [0, 1) of the shares. */
export function valueAt<T>({ values, sums }: Shares<T>, at: number): T {
  let low = 0
  let high = sums.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sums[middle] as number) > at) high = middle
    else low = middle + 1
  }
  return values[low] as T
}

export const draw = <T>(shares: Shares<T>, r: Rng): T => valueAt(shares, r.float())

const sorted = (shares: Shares<number>): Shares<number> => {
  const weights = shares.values.map((value, i) => {
    const share = (shares.sums[i] as number) - (i === 0 ? 0 : (shares.sums[i - 1] as number))
    return [value, share] as const
  })
  weights.sort((a, b) => a[0] - b[0])
  return cumulate(
    weights.map(([value]) => value),
    weights.map(([, share]) => share),
  )
}

const eachSorted = (table: Record<Kind, Shares<number>>): Record<Kind, Shares<number>> =>
  Object.fromEntries(KINDS.map((kind) => [kind, sorted(table[kind])])) as Record<Kind, Shares<number>>

/** Reads the network (13 MB of JSON, a quarter of a second). Numbers are sorted, so that a place in them means more or less. */
export function openValues(half: Half): Values {
  const known = opened.get(half) ?? readValues(half)
  opened.set(half, known)
  return known
}

/** Nobody changes them, and reading them takes longer than making a small population. */
const opened = new Map<Half, Values>()

function readValues(half: Half): Values {
  const url = new URL(FILE, import.meta.resolve('fingerprint-generator'))
  const { nodes } = JSON.parse(unzipOne(readFileSync(url)).toString('utf8')) as { nodes: readonly Node[] }
  const node = (name: string): Node => {
    const found = nodes.find((one) => one.name === name)
    if (found === undefined) throw new Error(`the network has no ${name}`)
    return found
  }
  const agents = new Map<string, number>(
    Object.entries(node('userAgent').conditionalProbabilities).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number',
    ),
  )
  return {
    screens: weigh(node('screen'), agents, screenOf, half),
    cards: weigh(node('videoCard'), agents, cardOf, half),
    fonts: weigh<readonly string[]>(node('fonts'), agents, fontsOf, half),
    hints: weigh(node('userAgentData'), agents, hintsOf, half),
    // A few dozen numbers: half of them would be another kind of hardware.
    cores: eachSorted(weigh(node('hardwareConcurrency'), agents, coresOf, null)),
    memory: eachSorted(weigh(node('deviceMemory'), agents, numberOf, null)),
    touchPoints: weigh(node('maxTouchPoints'), agents, numberOf, null),
  }
}
