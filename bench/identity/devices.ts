// The devices of a population: fleets of identical machines, households that share an address, and what each device is and
// how its owner behaves. A device is one browser profile; everything here stays, what changes is in its life.

import { hash32 } from '../../src/domain/ids.ts'
import { type Rng, rng } from '../../test/helpers/rng.ts'
import type { Hardware, Models, Platform } from './hardware.ts'
import { drawPlace, type Home, makeHome, type Place } from './networks.ts'
import type { ParameterName, Rates } from './parameters.ts'
import { drawTraits, type Traits } from './traits.ts'
import { cumulate, draw, type Kind, type Screen, type Values } from './values.ts'

export type Browser = 'chrome' | 'edge' | 'firefox' | 'safari' | 'samsung' | 'brave'

export interface Habits {
  /** Storage is gone after every session. */
  readonly clearsOnExit: boolean
  /** Storage is gone after seven days without a visit. */
  readonly capped: boolean
  readonly privateChance: number
  readonly vpn: boolean
  readonly travels: boolean
  /** How long after a release this device has it. */
  readonly lagMs: number
  /** Claims another profile on every visit. */
  readonly spoofs: boolean
}

export interface Device {
  readonly index: number
  readonly platform: Platform
  readonly browser: Browser
  /** Firefox with resistFingerprinting. */
  readonly resists: boolean
  /** Number of the fleet it belongs to, or null. */
  readonly fleet: number | null
  readonly hardware: Hardware
  readonly fonts: readonly string[]
  readonly driver: number
  readonly traits: Traits
  /** The second screen of a docked laptop. */
  readonly monitor: Screen | null
  readonly home: Home
  readonly carrier: number
  readonly region: number
  readonly habits: Habits
  readonly firstMs: number
  readonly lastMs: number
}

export interface World {
  readonly rates: Rates
  readonly values: Values
  readonly models: Models
  readonly seed: number
  readonly startMs: number
  readonly endMs: number
}

const DAY_MS = 86_400_000
export const PLATFORMS: readonly Platform[] = ['windows', 'mac', 'linux', 'chromeos', 'android', 'ios']
const BROWSERS: Readonly<Record<Platform, readonly Browser[]>> = {
  windows: ['chrome', 'edge', 'firefox'],
  mac: ['chrome', 'safari', 'firefox'],
  linux: ['chrome', 'firefox'],
  chromeos: ['chrome'],
  android: ['chrome', 'samsung', 'firefox'],
  ios: ['safari', 'chrome'],
}
/** Fleets are Windows PCs with the company's browser. */
const FLEET_BROWSERS: readonly Browser[] = ['chrome', 'edge']

const exponential = (mean: number, r: Rng): number => -mean * Math.log(1 - r.float())
const streamOf = (world: World, name: string): Rng => rng(hash32(`${world.seed}/${name}`))

const weighed = <T extends string>(items: readonly T[], prefix: string, rates: Rates) =>
  cumulate(
    items,
    items.map((item) => rates[`${prefix}.${item}` as ParameterName] ?? 1),
  )

export const isMobile = (platform: Platform): boolean => platform === 'android' || platform === 'ios'

export function drawBrowser(platform: Platform, rates: Rates, r: Rng): Browser {
  const browser = draw(weighed(BROWSERS[platform], platform, rates), r)
  return browser === 'chrome' && platform !== 'ios' && r.chance(rates['chrome.brave']) ? 'brave' : browser
}

export const drawPlatform = (rates: Rates, r: Rng): Platform => draw(weighed(PLATFORMS, 'platform', rates), r)

const share = (items: readonly string[], prefix: string, item: string, rates: Rates): number => {
  const weight = (one: string): number => rates[`${prefix}.${one}` as ParameterName] ?? 1
  return weight(item) / items.reduce((sum, one) => sum + weight(one), 0)
}

/** Share of devices on a platform, fleets apart. */
export const platformShare = (platform: Platform, rates: Rates): number => share(PLATFORMS, 'platform', platform, rates)

/** Share of a platform's devices with a browser, fleets apart; `resists` with resistFingerprinting or without. */
export function browserShare(platform: Platform, browser: Browser, resists: boolean, rates: Rates): number {
  const brave = platform === 'ios' ? 0 : rates['chrome.brave']
  const chrome = browser === 'chrome' || browser === 'brave'
  const among = share(BROWSERS[platform], platform, browser === 'brave' ? 'chrome' : browser, rates)
  if (chrome) return among * (browser === 'brave' ? brave : 1 - brave)
  if (browser !== 'firefox' || isMobile(platform)) return among
  return among * (resists ? rates['firefox.resist'] : 1 - rates['firefox.resist'])
}

/** Which column of the values a browser's fonts are in. */
export function fontKind(platform: Platform, browser: Browser): Kind {
  if (platform === 'ios') return 'iphone'
  return platform === 'mac' && browser === 'safari' ? 'safari' : platform
}

export const drawFonts = (values: Values, platform: Platform, browser: Browser, r: Rng): readonly string[] =>
  draw(values.fonts[fontKind(platform, browser)], r)

/** Driver builds are a few per card, the newest the most common. */
export const drawDriver = (rates: Rates, r: Rng): number =>
  Math.min(Math.max(1, Math.round(rates['drivers.perGpu'])) - 1, Math.floor(exponential(1, r)))

function drawHabits(platform: Platform, browser: Browser, rates: Rates, r: Rng): Habits {
  const heavy = r.chance(rates['private.heavyUsers'])
  const laggard = r.chance(rates['release.laggards'])
  const webkit = platform === 'ios' || browser === 'safari'
  return {
    clearsOnExit: r.chance(rates['storage.clearOnExit']),
    capped: webkit && r.chance(rates['storage.safariCapped']),
    privateChance: rates[heavy ? 'private.heavy' : 'private.usual'],
    vpn: r.chance(rates['vpn.share']),
    travels: isMobile(platform) || r.chance(0.5),
    lagMs: DAY_MS * exponential(rates[laggard ? 'release.laggardDays' : 'release.lagDays'], r),
    spoofs: r.chance(rates['spoof.share']),
  }
}

function presence(world: World, r: Rng): { firstMs: number; lastMs: number } {
  const { startMs, endMs, rates } = world
  const spanMs = endMs - startMs
  // Who is there from the start is seen for the first time when its usual gap ends.
  const early = r.chance(rates['devices.present'])
  const soonMs = Math.min(spanMs * 0.5, DAY_MS * rates['visits.gapDays'] * 2)
  const firstMs = startMs + r.float() * (early ? soonMs : spanMs)
  return { firstMs, lastMs: r.chance(rates['devices.retire']) ? firstMs + r.float() * (endMs - firstMs) : endMs }
}

function makeDevice(world: World, index: number, home: Home, twin: Hardware | null): Device {
  const { rates, values, models } = world
  const r = streamOf(world, `device/${index}`)
  const platform = twin?.platform ?? drawPlatform(rates, r)
  const browser = drawBrowser(platform, rates, r)
  const desktop = !isMobile(platform)
  return {
    index,
    platform,
    browser,
    resists: desktop && browser === 'firefox' && r.chance(rates['firefox.resist']),
    fleet: null,
    hardware: twin ?? models.pick(platform, r),
    fonts: drawFonts(values, platform, browser, r),
    driver: isMobile(platform) ? 0 : drawDriver(rates, r),
    traits: drawTraits(platform, rates, streamOf(world, `traits/${index}`)),
    monitor: desktop && r.chance(rates['dock.share']) ? models.monitor(platform, r) : null,
    home,
    carrier: r.int(Math.max(1, Math.round(rates['carriers.perCountry']))),
    region: r.int(Math.max(1, Math.round(rates['carriers.regions']))),
    habits: drawHabits(platform, browser, rates, r),
    ...presence(world, r),
  }
}

/** Identical machines of one office; their users differ in little but when they come. */
function makeFleet(world: World, fleet: number, from: number, size: number): Device[] {
  const { rates, values, models } = world
  const r = streamOf(world, `fleet/${fleet}`)
  const place: Place = drawPlace(r)
  const home: Home = { place, key: `fleet/${fleet}`, v6: false, leaseMs: Number.POSITIVE_INFINITY, phaseMs: 0 }
  const hardware = models.pick('windows', r)
  const browser = r.pick(FLEET_BROWSERS)
  const fonts = drawFonts(values, 'windows', browser, r)
  const driver = drawDriver(rates, r)
  const monitors = [models.monitor('windows', r), models.monitor('windows', r)]
  const lagMs = rates['fleet.updateLagDays'] * DAY_MS
  return Array.from({ length: size }, (_, i) => {
    const own = streamOf(world, `device/${from + i}`)
    return {
      ...makeDevice(world, from + i, home, hardware),
      platform: 'windows',
      browser,
      resists: false,
      fleet,
      fonts,
      driver,
      monitor: own.chance(rates['dock.share']) ? own.pick(monitors) : null,
      habits: {
        clearsOnExit: own.chance(rates['storage.clearOnExit']),
        capped: false,
        privateChance: rates['private.usual'],
        vpn: false,
        travels: false,
        lagMs: lagMs + exponential(DAY_MS, own),
        spoofs: false,
      },
    }
  })
}

/** `count` devices; the same for the same world. */
export function makeDevices(world: World, count: number): Device[] {
  const { rates } = world
  const r = streamOf(world, 'households')
  const devices: Device[] = []
  const inFleets = Math.round(count * rates['fleet.share'])
  const smallest = Math.max(2, Math.round(rates['fleet.sizeMin']))
  const ratio = Math.max(1, rates['fleet.sizeMax'] / rates['fleet.sizeMin'])
  for (let fleet = 0; devices.length + smallest <= inFleets; fleet++) {
    const size = Math.min(Math.round(smallest * ratio ** r.float()), inFleets - devices.length)
    devices.push(...makeFleet(world, fleet, devices.length, size))
  }
  for (let household = 0; devices.length < count; household++) {
    const place = drawPlace(r)
    const home = makeHome(place, `home/${world.seed}/${household}`, rates, r)
    const size = Math.min(1 + r.int(Math.max(1, Math.round(rates['household.sizeMax']))), count - devices.length)
    const members: Device[] = []
    for (let i = 0; i < size; i++) {
      const twin = members.length > 0 && r.chance(rates['household.twin']) ? r.pick(members).hardware : null
      members.push(makeDevice(world, devices.length + i, home, twin))
    }
    devices.push(...members)
  }
  return devices
}
