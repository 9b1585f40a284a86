// How likely a device looks like that: one that nobody has seen, by the true shares of everything, and one that is known, by
// what it showed before and the true rates at which each part of it changes.

import { updated } from './browsers.ts'
import { browserShare, type Device, isMobile, platformShare } from './devices.ts'
import type { Hardware, Platform } from './hardware.ts'
import { EXTRA_FONTS, osRate, SESSION_MS, trainOf } from './life.ts'
import { type Drivers, fontsKey, type Looks, type Model } from './oracle-models.ts'
import { languagesShare } from './oracle-networks.ts'
import { happenedIn, lagBetween } from './oracle-returns.ts'
import type { Shown } from './oracle-shown.ts'
import type { Rates } from './parameters.ts'
import { releasedAt } from './releases.ts'
import { SCALES } from './traits.ts'
import type { Screen } from './values.ts'

/** What a known device has shown, as its next visit is compared with. */
export interface Appearance {
  /** What it is: of this only hardware, browser, place and fleet are used, which its visits have shown. */
  readonly facts: Device
  readonly shown: Shown
  readonly atMs: number
  /** Between what its lag of updates is, in milliseconds. */
  readonly lag: readonly [fromMs: number, toMs: number]
  readonly drivers: (Drivers & { readonly atMs: number }) | null
  readonly osUpdates: number
  readonly voicesAdded: number
  readonly languages: readonly string[] | null
  /** The second screen, once it was seen, and visits without one before. */
  readonly monitor: Screen | null
  readonly undocked: number
  /** Visits by the number of microphones. */
  readonly inputs: readonly number[]
  /** What it draws in its session, where that is noise. */
  readonly noise: string | null
}

/** A drawing made anew in each session that comes twice: nobody else draws it. */
const NOISE_AGREES = 1e12

function frameShare(platform: Platform, frame: string, rates: Rates): number {
  const moved = rates['traits.barMoved']
  if (isMobile(platform)) return frame === '0,0,0,0' ? 1 : 0
  const [top, right, bottom, left] = frame.split(',').map(Number)
  if (platform === 'mac') return bottom === 80 ? 1 - moved : moved / 8
  const usual = platform === 'windows' ? 50 : 30
  const isUsual = top === 0 && right === 0 && left === 0 && bottom === usual
  const isOther = !(isUsual && platform === 'windows')
  return (isUsual ? 1 - moved : 0) + (isOther ? moved / 5 : 0)
}

function askedShare(platform: Platform, { asked }: Shown, voicesAdded: number, rates: Rates): number {
  const is = (told: boolean | null, chance: number) => (told === null ? 1 : told ? chance : 1 - chance)
  const scaled = rates[isMobile(platform) ? 'traits.textScaledPhone' : 'traits.textScaledDesktop']
  const spoken = rates['traits.voicesAdded']
  if (voicesAdded < 0 || voicesAdded > 4) return 0
  return (
    (asked.textScale === 1 ? 1 - scaled : scaled / SCALES.length) *
    is(asked.reducedMotion, rates['traits.reducedMotion']) *
    is(asked.contrast, rates['traits.contrast']) *
    is(asked.reducedTransparency, rates['traits.contrast']) *
    is(asked.forcedColors, platform === 'windows' ? rates['traits.forcedColors'] : 0) *
    (voicesAdded === 0 ? 1 - spoken : spoken / 4)
  )
}

function equipmentShare(platform: Platform, { equipment }: Shown, inputs: readonly number[], rates: Rates): number {
  if (isMobile(platform)) return 1
  const plugged = rates['traits.replugged']
  let total = 0
  let agreeing = 0
  for (let base = 0; base < 3; base++) {
    const others = inputs.some((n, i) => n > 0 && i !== base && i !== base + 1)
    if (others) continue
    const weight = plugged ** (inputs[base + 1] ?? 0) * (1 - plugged) ** (inputs[base] ?? 0)
    total += weight
    if (equipment.audioinput === base) agreeing += weight * (1 - plugged)
    if (equipment.audioinput === base + 1) agreeing += weight * plugged
  }
  return total === 0 ? 0 : agreeing / total
}

/** Between what the lag of updates is of somebody who has this version then, in milliseconds. */
export function lagOf(facts: Device, version: number, atMs: number): readonly [number, number] {
  const train = trainOf(facts)
  const oldest = train === 'safari' ? 0 : 1
  const toMs = version <= oldest ? Number.POSITIVE_INFINITY : atMs + 1 - releasedAt(train, version)
  return [atMs - releasedAt(train, version + 1), toMs]
}

export interface Likelihoods {
  /** Of a device nobody has seen, its model apart: `like` says what it is, `drivers` are those shown. */
  fresh(shown: Shown, like: Device, drivers: Drivers | null, atMs: number): number
  /** Share of new devices that are of a platform and browser and show the screen and system of these models. */
  models(shown: Shown, models: readonly Model[], anyBuild?: boolean): number
  /** Chance that a new device of a model shows that screen and system. */
  model(shown: Shown, hardware: Hardware, anyBuild?: boolean): number
  browser(shown: Shown): number
  known(appearance: Appearance, shown: Shown, drivers: Drivers | null, atMs: number): number
  /** Chance that a known device asks for these languages. */
  languages(appearance: Appearance, shown: Shown, atMs: number): number
  /** Releases of its system that a known device has taken by now, as far as they show. */
  osUpdates(appearance: Appearance, shown: Shown, atMs: number): number
}

export function likelihoodsOf(looks: Looks, rates: Rates): Likelihoods {
  const dockUse = rates['dock.use']

  function screenChance(hardware: Hardware, shown: Shown, has: number, monitor: Screen | null): number {
    const { screen, platform } = shown
    if (screen === null) return 1
    const own = looks.zoomed(hardware.screen, screen)
    if (isMobile(platform)) return own
    if (monitor !== null) return (1 - dockUse) * own + dockUse * looks.zoomed(monitor, screen)
    return (1 - has * dockUse) * own + has * dockUse * looks.monitorShare(platform, screen)
  }

  function model(shown: Shown, hardware: Hardware, anyBuild = false): number {
    const { build, platform } = shown
    const isBuilt = anyBuild || build === null || platform === 'chromeos' || hardware.hints.platformVersion === build
    return isBuilt ? screenChance(hardware, shown, rates['dock.share'], null) : 0
  }

  const browser = (shown: Shown): number =>
    browserShare(shown.platform, shown.browser, shown.resists, rates) * (shown.window === null ? 1 : 0.25)

  /** Chance of system and of what people ask of it after so many more releases. */
  function systemChance(known: Appearance, shown: Shown, atMs: number, more: 0 | 1): number {
    const { facts, osUpdates, voicesAdded, shown: before } = known
    const elapsedMs = atMs - known.atMs
    const rate = osRate(facts)
    const happens = rate === null ? 0 : happenedIn(rates[rate], elapsedMs)
    const chance = more === 1 ? happens : 1 - happens
    if (chance === 0) return 0
    const after = osUpdates + more
    const isBuilt = shown.build === null || updated(facts, after, shown.version) === shown.build
    if (!isBuilt) return 0
    const added = shown.voices - (facts.platform === 'mac' ? after : 0)
    const asks = happenedIn(rates['traits.changesPerYear'], elapsedMs)
    const [a, b] = [before.asked, shown.asked]
    const isSame =
      added === voicesAdded &&
      a.textScale === b.textScale &&
      a.reducedMotion === b.reducedMotion &&
      a.contrast === b.contrast &&
      a.reducedTransparency === b.reducedTransparency &&
      a.forcedColors === b.forcedColors
    return chance * ((isSame ? 1 - asks : 0) + asks * askedShare(facts.platform, shown, added, rates))
  }

  function fontsChance({ facts, shown: before, atMs }: Appearance, { fonts }: Shown, nowMs: number): number {
    if (fonts === null || before.fonts === null) return 1
    const changes = isMobile(facts.platform) ? 0 : happenedIn(rates['fonts.changesPerYear'], nowMs - atMs)
    const [more, fewer] = fonts.length > before.fonts.length ? [fonts, before.fonts] : [before.fonts, fonts]
    if (more.length === fewer.length) return fontsKey(more) === fontsKey(fewer) ? 1 - changes : 0
    if (changes === 0 || more.length !== fewer.length + 1) return 0
    const had = new Set(fewer)
    const added = more.filter((font) => !had.has(font))
    return added.length === 1 && EXTRA_FONTS.includes(added[0] as string) ? changes / EXTRA_FONTS.length : 0
  }

  function driverChance({ drivers: before }: Appearance, drivers: Drivers | null, nowMs: number): number {
    if (drivers === null) return 1
    if (before === null) return looks.driverShare(drivers)
    const every = Math.min(before.every, drivers.every)
    const apart = drivers.first - before.first
    const more = Number.isFinite(every) ? ((apart % every) + every) % every : apart
    if (more < 0) return 0
    const changes = happenedIn(rates['drivers.updatesPerYear'], nowMs - before.atMs)
    let chance = more === 0 ? 1 - changes : 1
    for (let i = 1; i <= more; i++) chance *= changes / i
    return chance
  }

  function languagesChance(
    { facts, languages: before, atMs }: Appearance,
    { languages }: Shown,
    nowMs: number,
  ): number {
    if (languages === null || before === null) return 1
    const changes = happenedIn(rates['languages.changesPerYear'], nowMs - atMs)
    const isSame = before.join() === languages.join()
    return (isSame ? 1 - changes : 0) + changes * languagesShare(facts.home.place.country, languages)
  }

  function versionChance({ facts, lag }: Appearance, { version }: Shown, atMs: number): number {
    const [fromMs, toMs] = lagOf(facts, version, atMs)
    const fleet = facts.fleet !== null
    const all = lagBetween(lag[0], lag[1], fleet, rates)
    if (all === 0) return 1
    return lagBetween(Math.max(lag[0], fromMs), Math.min(lag[1], toMs), fleet, rates) / all
  }

  return {
    model,
    browser,
    languages: languagesChance,
    models(shown, models, anyBuild = false) {
      let share = 0
      for (const { hardware, share: its } of models) share += its * model(shown, hardware, anyBuild)
      return share * platformShare(shown.platform, rates) * browser(shown)
    },
    fresh(shown, like, drivers, atMs) {
      const { platform, fonts, equipment } = shown
      const [fromMs, toMs] = lagOf(like, shown.version, atMs)
      const equipped = isMobile(platform) ? 1 : (equipment.videoinput === 1 ? 0.6 : 0.4) / 3
      const ofFleet = like.fleet !== null
      const dressed = ofFleet
        ? Number(fonts === null || fontsKey(like.fonts.toSorted()) === fontsKey(fonts)) *
          Number(drivers === null || drivers.first === like.driver % drivers.every)
        : looks.fontsShare(shown) * looks.driverShare(drivers)
      return (
        dressed *
        lagBetween(fromMs, toMs, ofFleet, rates) *
        frameShare(platform, shown.frame, rates) *
        askedShare(platform, shown, shown.voices, rates) *
        equipmentShare(platform, shown, [], rates) *
        equipped
      )
    },
    known(appearance, shown, drivers, atMs) {
      const { facts, shown: before, monitor, undocked, inputs, noise } = appearance
      if (before.frame !== shown.frame || before.window !== shown.window) return 0
      const [a, b] = [before.equipment, shown.equipment]
      if (a.audiooutput !== b.audiooutput || a.videoinput !== b.videoinput) return 0
      const without = rates['dock.share'] * (1 - dockUse) ** undocked
      const has = without / (without + 1 - rates['dock.share'])
      let chance = screenChance(facts.hardware, shown, has, monitor)
      if (chance === 0) return 0
      chance *= fontsChance(appearance, shown, atMs) * driverChance(appearance, drivers, atMs)
      if (chance === 0) return 0
      chance *= systemChance(appearance, shown, atMs, 0) + systemChance(appearance, shown, atMs, 1)
      if (chance === 0) return 0
      chance *= languagesChance(appearance, shown, atMs) * versionChance(appearance, shown, atMs)
      chance *= equipmentShare(facts.platform, shown, inputs, rates)
      if (!shown.isNoise || shown.isPrivate || noise === null || atMs - appearance.atMs >= SESSION_MS) return chance
      return noise === shown.canvas ? chance * NOISE_AGREES : 0
    },
    osUpdates(appearance, shown, atMs) {
      const [none, one] = [systemChance(appearance, shown, atMs, 0), systemChance(appearance, shown, atMs, 1)]
      return appearance.osUpdates + (one > none ? 1 : 0)
    },
  }
}
