// What could stand behind what a visit shows: models of hardware, builds of the graphics driver, sets of fonts, screens, each
// with its true share among new devices. Found by showing every model once, so nothing of `body.ts` is written a second time.

import { present } from './body.ts'
import { type Browser, type Device, fontKind, isMobile } from './devices.ts'
import { type Hardware, KIND, type Platform } from './hardware.ts'
import { type Moment, trainOf, ZOOMS } from './life.ts'
import { readShown, type Shown } from './oracle-shown.ts'
import { END_MS, type Population } from './population.ts'
import { newestAt, openRendering } from './releases.ts'
import type { Screen, Shares } from './values.ts'

export interface Model {
  readonly hardware: Hardware
  /** Of the platform's devices. */
  readonly share: number
}

/** Which builds of the driver draw or sound like that: `first`, `first + every`, and so on. */
export interface Drivers {
  readonly first: number
  readonly every: number
}

export interface Looks {
  /** The models that show this hardware; their screens and systems may be others. */
  modelsOf(shown: Shown): readonly Model[]
  /** Null where the driver does not show. */
  driversOf(shown: Shown): Drivers | null
  /** Share of the builds of drivers among new devices. */
  driverShare(drivers: Drivers | null): number
  fontsShare(shown: Shown): number
  /** Chance that a screen of somebody's own is shown like that. */
  zoomed(screen: Screen, as: Screen): number
  /** Chance that any monitor of the platform is shown like that. */
  monitorShare(platform: Platform, as: Screen): number
}

const DRIVERS_MAX = 24
const AUDIO_REPEATS = 3
const RATIO_EXACT = 1e-6

export const fontsKey = (fonts: readonly string[]): string => fonts.join('\n')

function shareMap<T>(shares: Shares<T>, keyOf: (value: T) => string): ReadonlyMap<string, number> {
  const map = new Map<string, number>()
  shares.values.forEach((value, i) => {
    const share = (shares.sums[i] as number) - (i === 0 ? 0 : (shares.sums[i - 1] as number))
    map.set(keyOf(value), (map.get(keyOf(value)) ?? 0) + share)
  })
  return map
}

const screenKey = ({ width, height, ratio, depth, hdr }: Screen, zoom = 1): string =>
  `${width}/${height}/${Math.round((ratio / zoom) * 10_000)}/${depth}/${hdr}`

function once<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>()
  return (key) => {
    const found = made.get(key) ?? make(key)
    made.set(key, found)
    return found
  }
}

export function openLooks({ world, devices }: Population): Looks {
  const { rates, values, models } = world
  const rendering = openRendering(rates, world.seed)
  const [any] = devices
  if (any === undefined) throw new Error('no devices')
  const traits = { ...any.traits, frame: [30, 0, 80, 0] } as const

  /** A visit of a device with that hardware, of which nothing but the hardware and the driver counts. */
  function show(device: Device, isPrivate: boolean, version: number, driver: number): Shown {
    const { languages, zone } = device.home.place
    const moment: Moment = {
      device,
      atMs: END_MS,
      returning: false,
      tokenless: true,
      isPrivate,
      session: 0,
      ip: '',
      zone,
      languages,
      fonts: [],
      version,
      osUpdates: 0,
      driver,
      traits: isMobile(device.platform) ? { ...traits, frame: [0, 0, 0, 0] } : traits,
      replugged: false,
      screen: device.hardware.screen,
      zoom: 1,
    }
    return readShown(present(moment, world, rendering))
  }

  const as = (hardware: Hardware, browser: Browser, resists: boolean): Device => ({
    ...any,
    platform: hardware.platform,
    browser,
    resists,
    hardware,
  })

  const tableOf = once((key): ReadonlyMap<string, readonly Model[]> => {
    const [platform, browser, resists, isPrivate] = JSON.parse(key) as [Platform, Browser, boolean, boolean]
    const table = new Map<string, Model[]>()
    const { values: all, sums } = models.all(platform)
    all.forEach((hardware, i) => {
      const device = as(hardware, browser, resists)
      const text = show(device, isPrivate, newestAt(trainOf(device), END_MS), 0).hardware
      const share = (sums[i] as number) - (i === 0 ? 0 : (sums[i - 1] as number))
      table.set(text, [...(table.get(text) ?? []), { hardware, share }])
    })
    return table
  })

  function modelsOf({ platform, browser, resists, isPrivate, hardware }: Shown): readonly Model[] {
    return tableOf(JSON.stringify([platform, browser, resists, isPrivate])).get(hardware) ?? []
  }

  const drawings = new Map<string, readonly Shown[]>()
  function driversOf(shown: Shown): Drivers | null {
    const isHeard = shown.engine === 'Gecko'
    if (isMobile(shown.platform) || (shown.isNoise && !isHeard)) return null
    const [model] = modelsOf(shown)
    if (model === undefined) return null
    const key = `${shown.browser}/${shown.hardware}/${isHeard ? shown.version : ''}`
    let drawn = drawings.get(key)
    if (drawn === undefined) {
      const device = as(model.hardware, shown.browser, shown.resists)
      const version = isHeard ? shown.version : newestAt(trainOf(device), END_MS)
      const builds = Array.from({ length: isHeard ? AUDIO_REPEATS : DRIVERS_MAX }, (_, i) => i)
      drawn = builds.map((driver) => show(device, false, version, driver))
      drawings.set(key, drawn)
    }
    const first = drawn.findIndex((one) => (isHeard ? one.audio === shown.audio : one.canvas === shown.canvas))
    return first < 0 ? null : { first, every: isHeard ? AUDIO_REPEATS : Number.POSITIVE_INFINITY }
  }

  const builds = Math.max(1, Math.round(rates['drivers.perGpu']))
  function driverShare(drivers: Drivers | null): number {
    if (drivers === null) return 1
    let share = 0
    for (let build = drivers.first; build < builds; build += drivers.every) {
      share += Math.exp(-build) - (build === builds - 1 ? 0 : Math.exp(-build - 1))
    }
    return share
  }

  const fontsOf = once((kind) =>
    shareMap(values.fonts[kind as keyof typeof values.fonts], (fonts) => fontsKey(fonts.toSorted())),
  )
  const monitorsOf = once((platform) => shareMap(values.screens[KIND[platform as Platform]], screenKey))
  const zoomShare = rates['zoom.use'] / ZOOMS.length

  return {
    modelsOf,
    driversOf,
    driverShare,
    fontsShare: ({ platform, browser, fonts }) =>
      fonts === null ? 1 : (fontsOf(fontKind(platform, browser)).get(fontsKey(fonts)) ?? 0),
    zoomed(screen, shown) {
      const { width, height, depth, hdr } = shown
      if (screen.width !== width || screen.height !== height || screen.depth !== depth || screen.hdr !== hdr) return 0
      const zoom = shown.ratio / screen.ratio
      if (Math.abs(zoom - 1) < RATIO_EXACT) return 1 - rates['zoom.use']
      return ZOOMS.some((one) => Math.abs(one - zoom) < RATIO_EXACT) ? zoomShare : 0
    },
    monitorShare(platform, shown) {
      const shares = monitorsOf(platform)
      let share = (1 - rates['zoom.use']) * (shares.get(screenKey(shown)) ?? 0)
      for (const zoom of ZOOMS) share += zoomShare * (shares.get(screenKey(shown, zoom)) ?? 0)
      return share
    },
  }
}
