// What the oracle knows: of every device that has come what its visits showed, and with whom it lives or works. Visits are
// learned from once they are answered, with their truth.

import { type Device, isMobile } from './devices.ts'
import type { Hardware, Platform } from './hardware.ts'
import { SESSION_MS, STICKY_MS } from './life.ts'
import type { Place } from './networks.ts'
import { type Appearance, type Likelihoods, lagOf } from './oracle-looks.ts'
import type { Looks } from './oracle-models.ts'
import type { Address, Home, Whereabouts } from './oracle-networks.ts'
import { type Keeping, keptAfter, newKeeping, travelChance } from './oracle-returns.ts'
import { readShown, type Shown } from './oracle-shown.ts'
import type { Population, Visit } from './population.ts'

const DAY_MS = 86_400_000

/** A household or a fleet of which somebody has come. */
export interface Family {
  readonly isFleet: boolean
  readonly place: Place
  readonly home: { known: Home | null; v6: boolean | null }
  /** How many of it have come. */
  met: number
}

type Changeable<T> = { -readonly [Key in keyof T]: T[Key] }

export interface Known extends Appearance, Whereabouts {
  readonly id: string
  readonly family: Family
  readonly firstMs: number
  readonly keeping: Keeping
  /** Shows another profile at every visit. */
  readonly spoofs: boolean
}

export interface Knowledge {
  /** Takes in a visit that was answered with an id, and tells what is known of its device. */
  learn(visit: Visit, answered: string): Known
  ofHardware(hardware: Hardware): readonly Known[]
  /** Fleets of a hardware, each with one of its devices. */
  fleetsOf(hardware: Hardware): readonly (readonly [Device, Family])[]
  spoofers(): readonly Known[]
  /** Households where zone and languages are what a visit shows. */
  familiesAt(shown: Shown): Iterable<Family>
  /** Somebody of a family of whom nothing else is known. */
  someoneOf(family: Family, platform: Platform): Whereabouts
}

const NOWHERE: ReadonlyMap<string, number> = new Map()

function keep<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const found = map.get(key)
  if (found === undefined) map.set(key, [value])
  else found.push(value)
}

const placeKey = (zone: string, languages: readonly string[]): string => `${zone}/${languages.join()}`

function seenAtHome(home: Family['home'], { line, subnet, v6 }: Address, atMs: number): void {
  const { known } = home
  home.v6 = v6
  if (known === null) home.known = { line, subnet, sinceMs: atMs, lastMs: atMs, moved: false }
  else if (known.line === line) known.lastMs = atMs
  else home.known = { line, subnet, sinceMs: (known.lastMs + atMs) / 2, lastMs: atMs, moved: true }
}

export function createKnowledge(
  { devices, world }: Population,
  looks: Looks,
  likelihoods: Likelihoods,
  readAddress: (ip: string) => Address,
): Knowledge {
  const { rates } = world
  const all = new Map<number, Changeable<Known>>()
  const ids = new Set<string>()
  const families = new Map<string, Family>()
  const byPlace = new Map<string, Family[]>()
  const byHardware = new Map<Hardware, Known[]>()
  const fleets = new Map<Hardware, (readonly [Device, Family])[]>()
  const disguised: Known[] = []

  function familyOf(facts: Device): Family {
    const { home, fleet, hardware } = facts
    let family = families.get(home.key)
    if (family === undefined) {
      const isFleet = fleet !== null
      family = { isFleet, place: home.place, home: { known: null, v6: isFleet ? false : null }, met: 0 }
      families.set(home.key, family)
      if (isFleet) keep(fleets, hardware, [facts, family] as const)
      else keep(byPlace, placeKey(home.place.zone, home.place.languages), family)
    }
    return family
  }

  function meet(facts: Device, shown: Shown, atMs: number, answered: string): Changeable<Known> {
    const family = familyOf(facts)
    family.met++
    const isDisguised = !looks.modelsOf(shown).some(({ hardware }) => hardware === facts.hardware)
    const isFleet = family.isFleet
    return {
      facts,
      // An id that was given to a new device was another's.
      id: ids.has(answered) ? `oracle-own-${facts.index}` : answered,
      family,
      firstMs: atMs,
      shown,
      atMs,
      lag: [0, Number.POSITIVE_INFINITY],
      drivers: null,
      osUpdates: 0,
      voicesAdded: shown.voices,
      languages: null,
      monitor: null,
      undocked: 0,
      inputs: [0, 0, 0, 0],
      noise: null,
      platform: facts.platform,
      place: family.place,
      isFleet,
      home: family.home,
      last: null,
      away: NOWHERE,
      carrier: null,
      region: null,
      vpn: isFleet ? 0 : rates['vpn.share'],
      travels: travelChance(facts),
      journey: null,
      own: null,
      keeping: newKeeping(facts, rates),
      spoofs: isDisguised || facts.browser !== shown.browser,
    }
  }

  function learnLook(known: Changeable<Known>, shown: Shown, atMs: number): void {
    const { facts, lag, inputs } = known
    if (known.last !== null) {
      known.osUpdates = likelihoods.osUpdates(known, shown, atMs)
      known.voicesAdded = shown.voices - (facts.platform === 'mac' ? known.osUpdates : 0)
    }
    const [fromMs, toMs] = lagOf(facts, shown.version, atMs)
    known.lag = [Math.max(lag[0], fromMs), Math.min(lag[1], toMs)]
    const drivers = looks.driversOf(shown)
    if (drivers !== null) known.drivers = { ...drivers, atMs }
    known.languages = shown.languages
    if (shown.screen !== null && !isMobile(facts.platform)) {
      if (looks.zoomed(facts.hardware.screen, shown.screen) > 0) known.undocked++
      else known.monitor = facts.monitor
    }
    known.inputs = inputs.map((n, i) => n + Number(i === shown.equipment.audioinput))
    if (atMs - known.atMs >= SESSION_MS) known.noise = null
    if (shown.isNoise && !shown.isPrivate) known.noise = shown.canvas
    known.shown = shown
  }

  function learnWhere(known: Changeable<Known>, address: Address, zone: string | null, atMs: number): void {
    const { last, family, place, isFleet } = known
    const { kind, ip, octet } = address
    known.last = { ip, atMs }
    const isJourney = (zone !== null && zone !== place.zone) || (kind === 'away' && octet !== place.octet)
    if (isJourney) {
      const { journey } = known
      const before = journey !== null && journey.zone === zone ? journey.ip : null
      known.journey = { zone: zone ?? place.zone, ip: kind === 'away' ? ip : before }
      known.travels = 1
    } else known.journey = null
    // Where it still is tells nothing twice.
    if (last !== null && last.ip === ip && atMs - last.atMs < STICKY_MS) return
    if (kind === 'vpn') known.vpn = 1
    else if (!isFleet) {
      const without = known.vpn * (1 - rates['vpn.use'])
      known.vpn = without / (without + 1 - known.vpn)
    }
    if (isJourney) return
    if (kind === 'home') {
      seenAtHome(family.home, address, atMs)
      known.own = address.v6 ? { day: Math.floor(atMs / DAY_MS), part: address.own } : null
    } else if (kind === 'carrier') {
      known.carrier = address.carrier
      known.region = address.region
    } else if (kind === 'away') known.away = new Map(known.away).set(ip, (known.away.get(ip) ?? 0) + 1)
  }

  return {
    learn(visit, answered) {
      const { truth, atMs } = visit
      const shown = readShown(visit)
      const found = all.get(truth.device)
      const known = found ?? meet(devices[truth.device] as Device, shown, atMs, answered)
      ids.add(answered).add(known.id)
      if (found === undefined) {
        all.set(truth.device, known)
        if (known.spoofs) disguised.push(known)
        keep(byHardware, known.facts.hardware, known)
      }
      const coming = {
        elapsedMs: atMs - known.atMs,
        isPrivate: shown.isPrivate,
        tokenless: truth.tokenless,
        spoofs: known.spoofs,
      }
      known.keeping = keptAfter(known.keeping, coming, rates)
      if (!known.spoofs) learnLook(known, shown, atMs)
      learnWhere(known, readAddress(visit.ip), shown.zone, atMs)
      if (known.spoofs) known.languages = shown.languages
      known.atMs = atMs
      return known
    },
    ofHardware: (hardware) => byHardware.get(hardware) ?? [],
    fleetsOf: (hardware) => fleets.get(hardware) ?? [],
    spoofers: () => disguised,
    familiesAt({ zone, languages }) {
      if (zone === null || languages === null) return [...byPlace.values()].flat()
      return byPlace.get(placeKey(zone, languages)) ?? []
    },
    someoneOf: ({ isFleet, place, home }, platform) => ({
      platform,
      place,
      isFleet,
      home,
      last: null,
      away: NOWHERE,
      carrier: null,
      region: null,
      vpn: isFleet ? 0 : rates['vpn.share'],
      travels: 0,
      journey: null,
      own: null,
    }),
  }
}
