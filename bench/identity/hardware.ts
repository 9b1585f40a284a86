// Hardware models: graphics card, cores, memory, screen and client hints drawn together, so that the attributes of a
// device hang together as they do in shops, and few models are many devices.

import { hash32 } from '../../src/domain/ids.ts'
import { type Rng, rng } from '../../test/helpers/rng.ts'
import type { Rates } from './parameters.ts'
import {
  type Card,
  cumulate,
  draw,
  type Hints,
  type Kind,
  type Screen,
  type Shares,
  type Values,
  valueAt,
} from './values.ts'

export type Platform = 'windows' | 'mac' | 'linux' | 'chromeos' | 'android' | 'ios'

export interface Hardware {
  readonly platform: Platform
  readonly pad: boolean
  readonly card: Card
  readonly cores: number
  readonly memory: number
  readonly screen: Screen
  readonly hints: Hints
  readonly touchPoints: number
}

export interface Models {
  /** A model of a platform, by its popularity. */
  pick(platform: Platform, r: Rng): Hardware
  /** All models of a platform with their popularity. */
  all(platform: Platform): Shares<Hardware>
  /** A screen somebody might put beside a desktop. */
  monitor(platform: Platform, r: Rng): Screen
}

export const KIND: Readonly<Record<Platform, Kind>> = {
  windows: 'windows',
  mac: 'mac',
  linux: 'linux',
  chromeos: 'chromeos',
  android: 'android',
  ios: 'iphone',
}
const APPLE_GPU: Card = { vendor: 'Apple Inc.', renderer: 'Apple GPU' }
const NO_HINTS: Hints = { platform: '', platformVersion: '', model: '', architecture: '', bitness: '' }
const PADS = [
  [820, 1180],
  [810, 1080],
  [834, 1194],
  [1024, 1366],
  [744, 1133],
] as const
/** How far memory follows cores: 0 not at all, 1 completely. */
const MEMORY_FOLLOWS = 0.6
const PHONE_VARIANTS = 3
const DRAWS_MAX = 50

function drawUntil<T>(from: () => T, fits: (value: T) => boolean): T {
  let value = from()
  for (let i = 0; i < DRAWS_MAX && !fits(value); i++) value = from()
  return value
}

function drawHints(values: Values, platform: Platform, card: Card, r: Rng): Hints {
  const shares = values.hints[KIND[platform]]
  if (platform === 'mac') {
    const architecture = card.renderer.includes('Apple M') ? 'arm' : 'x86'
    return drawUntil(
      () => draw(shares, r),
      (hints) => hints.architecture === architecture,
    )
  }
  return drawUntil(
    () => draw(shares, r),
    (hints) => platform !== 'android' || hints.model !== '',
  )
}

function makeModel(values: Values, platform: Platform, rates: Rates, given: Rng): Hardware {
  const kind = KIND[platform]
  if (platform === 'ios') {
    const pad = given.chance(rates['ios.pad'])
    const [width, height] = given.pick(PADS)
    const screen = pad
      ? { width, height, ratio: 2, depth: 24, hdr: false }
      : drawUntil(
          () => draw(values.screens.iphone, given),
          (s) => s.width < s.height,
        )
    return { platform, pad, card: APPLE_GPU, cores: 4, memory: 8, screen, hints: NO_HINTS, touchPoints: 5 }
  }
  let r = given
  let hints: Hints | null = null
  if (platform === 'android') {
    // The name of a phone fixes all the rest, but for what is sold under one name in several regions.
    hints = drawHints(values, platform, APPLE_GPU, given)
    r = rng(hash32(`${hints.model}/${given.int(PHONE_VARIANTS)}`))
  }
  const card = draw(values.cards[kind], r)
  const size = r.float()
  const spread = (1 - MEMORY_FOLLOWS) * (r.float() - 0.5)
  return {
    platform,
    pad: false,
    card,
    cores: valueAt(values.cores[kind], size),
    memory: valueAt(values.memory[kind], Math.min(0.999_999, Math.max(0, size + spread))),
    screen: draw(values.screens[kind], r),
    hints: hints ?? drawHints(values, platform, card, r),
    touchPoints: platform === 'android' ? 5 : draw(values.touchPoints[kind], r),
  }
}

export function openModels(values: Values, rates: Rates, seed: number): Models {
  const platforms = Object.keys(KIND) as Platform[]
  const tables = new Map(
    platforms.map((platform) => {
      const r = rng(hash32(`${seed}/models/${platform}`))
      const count = Math.max(4, Math.round(rates[`models.${platform}`]))
      const models = Array.from({ length: count }, () => makeModel(values, platform, rates, r))
      return [
        platform,
        cumulate(
          models,
          models.map((_, rank) => (rank + 1) ** -rates['models.zipf']),
        ),
      ] as const
    }),
  )
  function all(platform: Platform): Shares<Hardware> {
    const table = tables.get(platform)
    if (table === undefined) throw new Error(`no models of ${platform}`)
    return table
  }

  return {
    all,
    pick: (platform, r) => draw(all(platform), r),
    monitor: (platform, r) => draw(values.screens[KIND[platform]], r),
  }
}
