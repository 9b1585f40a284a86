// Reference: an oracle that knows the true rates, what every earlier visit truly was, and nothing of the present one but what
// a server sees. It weighs every known device against all who are still to come, and decides at the service's price.

import { type Answer, createStorages, type Reference } from './answer.ts'
import type { Device } from './devices.ts'
import type { Hardware } from './hardware.ts'
import { createKnowledge, type Family, type Known } from './oracle-knowledge.ts'
import { likelihoodsOf } from './oracle-looks.ts'
import { openLooks } from './oracle-models.ts'
import { addressReader, type From, networksOf, placeShare } from './oracle-networks.ts'
import {
  arrivalsOf,
  comingChance,
  fleetSizes,
  householdSizes,
  newKeeping,
  type Unseen,
  unseenOf,
} from './oracle-returns.ts'
import { readShown, type Shown } from './oracle-shown.ts'
import type { Population, Visit } from './population.ts'

/** A wrong link costs eight missed ones, as in the service. */
const ACCEPT_MIN = 8 / 9

interface Weighed {
  readonly best: Known | null
  /** Chance that it is the best, and that it is nobody known. */
  readonly chance: number
  readonly newChance: number
}

/** `population` is where rates and shares are read, and what a device that has come is. */
export function createOracle(population: Population): Reference {
  const { world, devices } = population
  const { rates } = world
  const arrivals = arrivalsOf(world)
  const looks = openLooks(population)
  const likelihoods = likelihoodsOf(looks, rates)
  const networks = networksOf(rates)
  const readAddress = addressReader(rates)
  const knowledge = createKnowledge(population, looks, likelihoods, readAddress)
  const storages = createStorages()
  const [any] = devices
  const sizes = householdSizes(rates)
  const ofFleets = fleetSizes(rates)
  const meanSize = sizes.reduce((sum, weight, size) => sum + weight * size, 0)
  const households = (devices.length * (1 - rates['fleet.share'])) / meanSize
  let drawn = 0

  const like = (shown: Shown, facts: Partial<Device> = {}): Device => ({
    ...(any as Device),
    platform: shown.platform,
    browser: shown.browser,
    fleet: null,
    ...facts,
  })

  function weigh(visit: Visit): Weighed {
    const { atMs } = visit
    const shown = readShown(visit)
    const from: From = { address: readAddress(visit.ip), zone: shown.zone, atMs }
    const { isPrivate, languages } = shown
    const coming = { elapsedMs: 0, isPrivate, tokenless: true, spoofs: false }
    const models = looks.modelsOf(shown)
    const drivers = looks.driversOf(shown)
    const stranger = like(shown)
    const fresh = likelihoods.fresh(shown, stranger, drivers, atMs)
    const browser = likelihoods.browser(shown)
    const anybody = likelihoods.models(shown, models) * fresh
    const seenShare = arrivals.seen(atMs)
    const firstPerMs = arrivals.first(atMs)
    const hazardPerMs = firstPerMs / Math.max(1e-9, 1 - seenShare)
    const comesNew = comingChance(newKeeping(stranger, rates), coming, rates)

    const unseen = new Map<string, Unseen>()
    const unseenIn = ({ isFleet, met }: Family): Unseen => {
      const key = `${isFleet}/${met}`
      const found = unseen.get(key) ?? unseenOf(isFleet ? ofFleets : sizes, met, seenShare)
      unseen.set(key, found)
      return found
    }
    /** Somebody of a known household or fleet, nobody of it in particular, from there. */
    const memberFrom = (family: Family): number => {
      const { place } = family
      if (shown.zone !== null && shown.zone !== place.zone) return 0
      if (languages !== null && languages.join() !== place.languages.join()) return 0
      return networks.chance(knowledge.someoneOf(family, shown.platform), from)
    }

    let best: Known | null = null
    let bestWeight = 0
    let total = 0
    const add = (known: Known, weight: number): void => {
      total += weight
      if (weight <= bestWeight) return
      bestWeight = weight
      best = known
    }
    const returning = (known: Known, lookChance: number): number => {
      if (lookChance === 0) return 0
      const came = { ...coming, elapsedMs: atMs - known.atMs, spoofs: known.spoofs }
      const perMs = arrivals.again(known.firstMs, known.atMs, atMs)
      return lookChance * perMs * comingChance(known.keeping, came, rates) * networks.chance(known, from)
    }

    let newWeight = 0
    const twinOf = (hardware: Hardware, { family }: Known): number => {
      if (family.isFleet) return 0
      const perMember = 2 * rates['household.twin'] * unseenIn(family).perMember
      const look = perMember === 0 ? 0 : likelihoods.model(shown, hardware) * browser * fresh
      return look === 0 ? 0 : hazardPerMs * perMember * look * comesNew * memberFrom(family)
    }
    for (const { hardware } of models) {
      for (const known of knowledge.ofHardware(hardware)) {
        newWeight += twinOf(hardware, known)
        const { facts, spoofs } = known
        if (spoofs || facts.browser !== shown.browser || facts.resists !== shown.resists) continue
        add(known, returning(known, likelihoods.known(known, shown, drivers, atMs)))
      }
      for (const [facts, family] of knowledge.fleetsOf(hardware)) {
        if (facts.browser !== shown.browser) continue
        const member = like(shown, facts)
        const look = likelihoods.model(shown, hardware) * likelihoods.fresh(shown, member, drivers, atMs)
        if (look === 0) continue
        const comes = comingChance(newKeeping(member, rates), coming, rates)
        newWeight += hazardPerMs * unseenIn(family).members * look * comes * memberFrom(family)
      }
    }
    const anyBuild = likelihoods.models(shown, models, true) * fresh
    for (const known of knowledge.spoofers())
      add(known, returning(known, anyBuild * likelihoods.languages(known, shown, atMs)))

    let fromKnown = 0
    for (const family of knowledge.familiesAt(shown)) fromKnown += unseenIn(family).members * memberFrom(family)
    // First visits of households of which nobody has come.
    let fromOthers = 0
    for (let size = 1; size < sizes.length; size++) {
      fromOthers += households * (sizes[size] as number) * size * (1 - seenShare) ** (size - 1)
    }
    const { octet } = from.address
    const strangers = networks.strangers(shown.platform, from.address) * placeShare(octet, shown.zone, languages)
    newWeight += (hazardPerMs * fromKnown + firstPerMs * fromOthers * strangers) * anybody * comesNew
    total += newWeight
    if (total === 0) return { best: null, chance: 0, newChance: 1 }
    return { best, chance: bestWeight / total, newChance: newWeight / total }
  }

  function answerTo(visit: Visit): Answer {
    const own = storages.read(visit)
    if (own !== null) return { id: own, confidence: 1 }
    const { best, chance, newChance } = weigh(visit)
    if (best !== null && chance >= ACCEPT_MIN) return { id: best.id, confidence: chance }
    return { id: `oracle-${drawn++}`, confidence: newChance }
  }

  return {
    name: 'oracle of the true rates',
    answer(visit) {
      const answer = answerTo(visit)
      // From here on the visit is an earlier one.
      storages.write(visit, knowledge.learn(visit, answer.id).id)
      return answer
    },
  }
}
