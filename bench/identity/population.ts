// The stream of visits of a whole population in order of time. What a service may see of a visit (body, headers, address,
// time, token) is kept apart from the truth about it.

import { present, type Sent } from './body.ts'
import type { Browser, Device, World } from './devices.ts'
import { makeDevices } from './devices.ts'
import { openModels, type Platform } from './hardware.ts'
import { type Moment, visitsOf } from './life.ts'
import { type Rates, ratesOf } from './parameters.ts'
import { openRendering } from './releases.ts'
import { type Half, openValues } from './values.ts'

export interface PopulationOptions {
  readonly devices: number
  readonly days: number
  readonly seed: number
  /** Perturbs every rate; null for the table as it stands. */
  readonly perturb: number | null
  /** Rates that are given, as they stand. */
  readonly given?: Partial<Rates>
  /** Which half of the rarer values is used. */
  readonly half: Half
}

export interface Visit extends Sent {
  readonly atMs: number
  readonly ip: string
  /** The truth, which no driver may pass on. */
  readonly truth: Truth
}

export interface Truth {
  readonly device: number
  readonly platform: Platform
  readonly browser: Browser
  readonly fleet: boolean
  readonly returning: boolean
  /** The device's storage holds no token at this visit. */
  readonly tokenless: boolean
  readonly isPrivate: boolean
}

export interface Population {
  readonly devices: readonly Device[]
  /** What the devices and their lives were drawn from. */
  readonly world: World
  /** All visits, oldest first; can be walked any number of times. */
  visits(): Generator<Visit, void>
}

/** Every stream ends here, so that a seed means the same visits on any day. */
export const END_MS = Date.UTC(2026, 9, 31)
const DAY_MS = 86_400_000

interface Pending {
  readonly moment: Moment
  readonly life: Iterator<Moment, void>
}

/** A binary heap by time, then device. */
function createQueue() {
  const heap: Pending[] = []
  const before = (a: Pending, b: Pending) =>
    a.moment.atMs - b.moment.atMs || a.moment.device.index - b.moment.device.index
  const at = (i: number) => heap[i] as Pending
  const swap = (i: number, j: number) => {
    const held = at(i)
    heap[i] = at(j)
    heap[j] = held
  }
  return {
    add(one: Pending) {
      heap.push(one)
      for (let i = heap.length - 1; i > 0; ) {
        const parent = (i - 1) >> 1
        if (before(at(i), at(parent)) >= 0) return
        swap(i, parent)
        i = parent
      }
    },
    take(): Pending | undefined {
      const first = heap[0]
      const last = heap.pop()
      if (heap.length === 0 || last === undefined) return first
      heap[0] = last
      for (let i = 0; ; ) {
        let least = i
        for (const child of [2 * i + 1, 2 * i + 2]) {
          if (child < heap.length && before(at(child), at(least)) < 0) least = child
        }
        if (least === i) return first
        swap(i, least)
        i = least
      }
    },
  }
}

export function openPopulation(options: PopulationOptions): Population {
  const { seed } = options
  const rates = { ...ratesOf(options.perturb), ...options.given }
  const values = openValues(options.half)
  const world: World = {
    rates,
    values,
    models: openModels(values, rates, seed),
    seed,
    startMs: END_MS - options.days * DAY_MS,
    endMs: END_MS,
  }
  const devices = makeDevices(world, options.devices)
  const rendering = openRendering(rates, seed)

  function toVisit(moment: Moment): Visit {
    const own = devices[moment.device.index] as Device
    return {
      ...present(moment, world, rendering),
      atMs: moment.atMs,
      ip: moment.ip,
      truth: {
        device: own.index,
        platform: own.platform,
        browser: own.browser,
        fleet: own.fleet !== null,
        returning: moment.returning,
        tokenless: moment.tokenless,
        isPrivate: moment.isPrivate,
      },
    }
  }

  return {
    devices,
    world,
    *visits() {
      const queue = createQueue()
      const resume = (life: Iterator<Moment, void>) => {
        const next = life.next()
        if (!next.done) queue.add({ moment: next.value, life })
      }
      for (const device of devices) resume(visitsOf(device, world))
      for (let next = queue.take(); next !== undefined; next = queue.take()) {
        yield toVisit(next.moment)
        resume(next.life)
      }
    },
  }
}
