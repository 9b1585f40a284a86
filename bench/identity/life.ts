// The life of a device: when it visits, from where, with which versions and screen, and what became of its storage in
// between. Lazy, and the same for the same world whatever other devices do.

import { hash32 } from '../../src/domain/ids.ts'
import { type Rng, rng } from '../../test/helpers/rng.ts'
import { type Device, drawBrowser, drawFonts, drawPlatform, isMobile, type World } from './devices.ts'
import {
  carrierAddress,
  drawPlace,
  homeAddress,
  otherLanguages,
  type Place,
  strangeAddress,
  vpnAddress,
} from './networks.ts'
import type { ParameterName } from './parameters.ts'
import { newestAt, type Train } from './releases.ts'
import { drawTraits, type Traits } from './traits.ts'
import type { Screen } from './values.ts'

/** One visit, before anything is made of it that a service could see. */
export interface Moment {
  /** What shows itself: the device, or for a spoofer another one each time. */
  readonly device: Device
  readonly atMs: number
  /** Not the first visit of this device. */
  readonly returning: boolean
  /** The storage holds nothing: cleared, private, or never written. */
  readonly tokenless: boolean
  readonly isPrivate: boolean
  /** Visits within half an hour share what browsers draw at random per session. */
  readonly session: number
  readonly ip: string
  readonly zone: string
  readonly languages: readonly string[]
  readonly fonts: readonly string[]
  readonly version: number
  /** Releases of the operating system the device has taken since its model was sold. */
  readonly osUpdates: number
  readonly driver: number
  readonly traits: Traits
  /** Something is plugged in that usually is not. */
  readonly replugged: boolean
  readonly screen: Screen
  readonly zoom: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS
export const SESSION_MS = 30 * MINUTE_MS
/** So soon after a visit most devices are still in the same place. */
export const STICKY_MS = 4 * HOUR_MS
export const SAFARI_CAP_MS = 7 * DAY_MS
export const ZOOMS = [0.9, 1.1, 1.25, 1.5]
export const EXTRA_FONTS = [
  'Gotham',
  'Univers CE 55 Medium',
  'ZWAdobeF',
  'SCRIPTINA',
  'Staccato222 BT',
  'Humanst521 BT',
  'Futura Md BT',
]
/** Most visits away from home are to the same other place. */
export const SAME_OTHER_PLACE = 0.8

interface Trip {
  readonly fromMs: number
  readonly toMs: number
  readonly place: Place
  readonly ip: string
}

const exponential = (mean: number, r: Rng): number => -mean * Math.log(1 - r.float())

function normal(r: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - r.float())) * Math.cos(2 * Math.PI * r.float())
}

/** Whether something that happens `perYear` times a year on average happened within a time. */
const happened = (perYear: number, elapsedMs: number, r: Rng): boolean =>
  r.chance(1 - Math.exp((-perYear * elapsedMs) / YEAR_MS))

export function trainOf(device: Device): Train {
  if (device.platform === 'ios') return 'safari'
  if (device.browser === 'firefox' || device.browser === 'safari' || device.browser === 'samsung') return device.browser
  return 'chromium'
}

function tripsOf(device: Device, { rates }: World, r: Rng): Trip[] {
  const trips: Trip[] = []
  if (!device.habits.travels) return trips
  for (let atMs = device.firstMs; ; ) {
    atMs += exponential(YEAR_MS / rates['travel.perYear'], r)
    if (atMs > device.lastMs) return trips
    const place = drawPlace(r)
    const toMs = atMs + exponential(rates['travel.days'] * DAY_MS, r)
    trips.push({ fromMs: atMs, toMs, place, ip: strangeAddress(place, r) })
    atMs = toMs
  }
}

function addressOf(device: Device, atMs: number, trip: Trip | undefined, other: string, world: World, r: Rng): string {
  const { rates, startMs } = world
  const { home, habits, fleet } = device
  const atHome = () => homeAddress(home, device.index, atMs, rates, startMs)
  if (habits.vpn && r.chance(rates['vpn.use'])) return vpnAddress(rates, r)
  if (trip !== undefined) return trip.ip
  if (fleet !== null) return r.chance(rates['fleet.office']) ? atHome() : other
  const away = () => (r.chance(SAME_OTHER_PLACE) ? other : strangeAddress(home.place, r))
  if (!isMobile(device.platform)) return r.chance(rates['network.desktopHome']) ? atHome() : away()
  if (r.chance(rates['network.mobileHome'])) return atHome()
  if (!r.chance(rates['network.mobileCarrier'])) return away()
  return carrierAddress(home.place, device.carrier, device.region, rates, r)
}

/** Installs or removes a font that the page can see. */
function changeFonts(fonts: readonly string[], r: Rng): readonly string[] {
  const font = r.pick(EXTRA_FONTS)
  return fonts.includes(font) ? fonts.filter((one) => one !== font) : [...fonts, font].sort()
}

/** The profile a spoofer shows this time. */
function disguised(device: Device, world: World, visit: number): Device {
  const r = rng(hash32(`${world.seed}/disguise/${device.index}/${visit}`))
  const platform = drawPlatform(world.rates, r)
  const browser = drawBrowser(platform, world.rates, r)
  return {
    ...device,
    platform,
    browser,
    hardware: world.models.pick(platform, r),
    fonts: drawFonts(world.values, platform, browser, r),
    monitor: null,
  }
}

function nextGap(world: World, r: Rng): number {
  const { rates } = world
  if (r.chance(rates['visits.burst'])) return MINUTE_MS + exponential(rates['visits.burstHours'] * HOUR_MS, r)
  return MINUTE_MS + rates['visits.gapDays'] * DAY_MS * Math.exp(rates['visits.gapSigma'] * normal(r))
}

export const osRate = ({ platform }: Pick<Device, 'platform'>): ParameterName | null =>
  platform === 'ios' || platform === 'chromeos' ? null : `os.updatesPerYear.${platform}`

/** All visits of a device in order of time. */
export function* visitsOf(device: Device, world: World): Generator<Moment, void> {
  const { rates } = world
  const r = rng(hash32(`${world.seed}/life/${device.index}`))
  const { habits, home } = device
  const trips = tripsOf(device, world, r)
  const other = strangeAddress(home.place, r)
  const train = trainOf(device)
  const osUpdatesPerYear = osRate(device)
  let { fonts, driver, traits } = device
  const own = rng(hash32(`${world.seed}/traits/${device.index}/life`))
  let languages: readonly string[] = home.place.languages
  let version = 0
  let osUpdates = 0
  let session = 0
  let stored = false
  let visit = 0
  let ip = ''
  let beforeMs = device.firstMs

  for (let atMs = device.firstMs; atMs <= device.lastMs; atMs += nextGap(world, r)) {
    const elapsedMs = atMs - beforeMs
    const sameSession = visit > 0 && elapsedMs < SESSION_MS
    if (!sameSession) session++
    const isPrivate = r.chance(habits.privateChance)
    const cleared =
      (habits.clearsOnExit && !sameSession) ||
      (habits.capped && elapsedMs > SAFARI_CAP_MS) ||
      r.chance(rates['storage.cleared']) ||
      habits.spoofs
    if (cleared) stored = false

    version = Math.max(version, newestAt(train, atMs - habits.lagMs))
    if (osUpdatesPerYear !== null && happened(rates[osUpdatesPerYear], elapsedMs, r)) osUpdates++
    if (happened(rates['drivers.updatesPerYear'], elapsedMs, r) && !isMobile(device.platform)) driver++
    if (happened(rates['fonts.changesPerYear'], elapsedMs, r) && !isMobile(device.platform))
      fonts = changeFonts(fonts, r)
    if (happened(rates['languages.changesPerYear'], elapsedMs, r)) languages = otherLanguages(home.place, r)
    if (happened(rates['traits.changesPerYear'], elapsedMs, own)) {
      const { frame, equipment } = traits
      traits = { ...drawTraits(device.platform, rates, own), frame, equipment }
    }
    const trip = trips.find((one) => one.fromMs <= atMs && atMs < one.toMs)
    const docked = device.monitor !== null && r.chance(rates['dock.use'])
    const zoomed = r.chance(rates['zoom.use'])
    const moved = !sameSession && !(elapsedMs < STICKY_MS && r.chance(rates['network.sticky']))
    if (moved || ip === '') ip = addressOf(device, atMs, trip, other, world, r)
    const shown = habits.spoofs ? disguised(device, world, visit) : device

    yield {
      device: shown,
      atMs: Math.floor(atMs),
      returning: visit > 0,
      tokenless: isPrivate || !stored,
      isPrivate,
      session: isPrivate ? -visit - 1 : session,
      ip,
      zone: trip?.place.zone ?? home.place.zone,
      languages,
      fonts: habits.spoofs ? shown.fonts : fonts,
      version: habits.spoofs ? newestAt(trainOf(shown), atMs - habits.lagMs) : version,
      osUpdates,
      driver,
      traits: habits.spoofs ? drawTraits(shown.platform, rates, own) : traits,
      replugged: own.chance(rates['traits.replugged']) && !isMobile(shown.platform),
      screen: docked && device.monitor !== null ? device.monitor : shown.hardware.screen,
      zoom: zoomed ? r.pick(ZOOMS) : 1,
    }
    if (!isPrivate) stored = true
    beforeMs = atMs
    visit++
  }
}
