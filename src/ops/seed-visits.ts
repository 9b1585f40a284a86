// Who visits when in a made-up history: visitors come, come back at the hours they are used to, and stay away. A wheel of time
// steps holds who is due, so that events come out in the order of time and visitors are forgotten after their last one.

import type { Verdict } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import { DAY_MS, HOUR_MS } from '../lib/durations.ts'
import { cumulate, openSeedRandom } from './seed-random.ts'
import { BOT_DEVICES, DEVICES, HOMES, HOSTINGS, NETWORKS } from './seed-world.ts'

export type VisitorKind = 'person' | 'abuser' | 'bot'

/** One visitor while it may come again. What is counted is counted by whoever takes the visits. */
export interface SeedVisitor {
  readonly id: string
  readonly partition: number
  readonly kind: VisitorKind
  /** Place in DEVICES. */
  readonly device: number
  /** Places in NETWORKS: where it is at home, and on its way. */
  readonly home: number
  readonly away: number
  readonly homeIp: string
  readonly awayIp: string
  /** Numbers of the accounts it uses; none: it never logs in. */
  readonly accounts: readonly number[]
  /** Days between visits, on average. */
  readonly gapDays: number
  /** Chance that a visit is in a private window, or behind a VPN. */
  readonly privacy: number
  readonly vpn: number
  firstAt: number
  lastAt: number
  visits: number
  byToken: number
  /** Bit by bit, which of `accounts` it was seen with. */
  accountsSeen: number
  readonly verdicts: Record<Verdict, number>
  lastVerdict: Verdict | null
  /** When it was last seen at home and on its way, 0 for never, and at other addresses. */
  homeAt: number
  awayAt: number
  others: { readonly ip: string; at: number }[] | null
  /** Visits it will still make, and those of the step at work. */
  left: number
  pending: number
}

export interface VisitsConfig {
  readonly seed: string
  readonly events: number
  /** Milliseconds; the first inclusive, the second exclusive. */
  readonly from: number
  readonly until: number
  readonly partitions: number
}

export interface Visits {
  readonly steps: number
  /** Makes the visits of one step, in the order of time. Steps are taken one after the other, from 0. */
  step(at: number, visit: (visitor: SeedVisitor, atMs: number) => void, leave: (visitor: SeedVisitor) => void): void
}

const STEP_EVENTS = 2_000
/** Of the visits of a step, at least: without new visitors old ones would fill any history. */
const NEW_SHARE = 0.06
/** Share of visits by hour of the day, UTC. */
const HOURS = [30, 22, 17, 14, 13, 15, 20, 28, 38, 46, 52, 55, 57, 60, 63, 66, 70, 74, 79, 82, 80, 70, 55, 41]
/** By day of the week, from Sunday. */
const WEEKDAYS = [82, 104, 106, 103, 101, 108, 96]
/** Growth from the first day to the last. */
const GROWTH = 0.35
const GAP_DAYS = [0.2, 0.5, 1, 1, 1, 1, 2, 3, 7]
const DEVICE_WEIGHTS = cumulate(DEVICES.map(({ weight }) => weight))
const HOME_WEIGHTS = cumulate(HOMES.map(({ weight }) => weight))
const HOSTING_WEIGHTS = cumulate(HOSTINGS.map(({ weight }) => weight))
const HOSTINGS_FROM = NETWORKS.length - HOSTINGS.length
const ACCOUNTS_MAX = 12

/** The same configuration makes the same visits. */
export function openVisits({ seed, events, from, until, partitions }: VisitsConfig): Visits {
  const random = openSeedRandom(`visits ${seed}`)
  const stepMs = Math.max(1_000, Math.min(HOUR_MS, Math.ceil(((until - from) * STEP_EVENTS) / events)))
  const steps = Math.ceil((until - from) / stepMs)
  const upTo = quotas(from, until, stepMs, steps, events)
  const wheel = new Map<number, SeedVisitor[]>()
  let people = 0

  const address = (network: number): string => {
    const { prefix } = NETWORKS[network] as (typeof NETWORKS)[number]
    if (!prefix.includes(':')) return `${prefix}.${random.int(256)}.${1 + random.int(254)}`
    // Without leading zeros or empty groups, so that the text is the canonical one.
    const group = () => (4_096 + random.int(61_440)).toString(16)
    return `${prefix}:${group()}:${group()}:${group()}:${group()}:${group()}`
  }

  function accountsOf(kind: VisitorKind): number[] {
    const own = ++people
    if (kind === 'bot') return random.chance(0.3) ? [own] : []
    if (kind === 'abuser') return Array.from({ length: 2 + random.int(ACCOUNTS_MAX - 1) }, (_, i) => own * 16 + i)
    if (random.chance(0.4)) return []
    // Some have the same account on a second device.
    return [random.chance(0.15) && own > 1 ? (own - 1) * 16 : own * 16]
  }

  function visitsOf(kind: VisitorKind): number {
    if (kind === 'bot') return 20 + Math.floor(random.exponential(150))
    if (kind === 'abuser') return 4 + Math.floor(random.exponential(14))
    const drawn = random.float()
    if (drawn < 0.34) return 1
    if (drawn < 0.7) return 2 + Math.floor(random.exponential(5))
    return 5 + Math.floor(random.exponential(30))
  }

  function newVisitor(): SeedVisitor {
    const drawn = random.float()
    const kind: VisitorKind = drawn < 0.004 ? 'bot' : drawn < 0.03 ? 'abuser' : 'person'
    const id = `pv_${random.base62(20)}`
    const home = kind === 'bot' ? HOSTINGS_FROM + random.weighted(HOSTING_WEIGHTS) : random.weighted(HOME_WEIGHTS)
    return {
      id,
      partition: homePartition(id, partitions),
      kind,
      device: kind === 'bot' ? random.pick(BOT_DEVICES) : random.weighted(DEVICE_WEIGHTS),
      home,
      away: home,
      homeIp: address(home),
      awayIp: address(home),
      accounts: accountsOf(kind),
      gapDays: kind === 'bot' ? 0.05 : random.pick(GAP_DAYS),
      privacy: random.chance(0.12) ? 0.5 : 0.02,
      vpn: kind === 'abuser' ? 0.3 : random.chance(0.06) ? 0.6 : 0.005,
      firstAt: 0,
      lastAt: 0,
      visits: 0,
      byToken: 0,
      accountsSeen: 0,
      verdicts: { allow: 0, challenge: 0, block: 0 },
      lastVerdict: null,
      homeAt: 0,
      awayAt: 0,
      others: null,
      left: visitsOf(kind),
      pending: 0,
    }
  }

  function put(step: number, visitor: SeedVisitor): void {
    const due = wheel.get(step)
    if (due === undefined) wheel.set(step, [visitor])
    else due.push(visitor)
  }

  /** Visits of one sitting, or a burst of a bot. */
  function together(visitor: SeedVisitor, room: number): number {
    const most = Math.min(visitor.left, room)
    if (most < 2) return most
    if (visitor.kind === 'bot') return Math.min(most, 1 + random.int(12))
    return random.chance(0.12) ? Math.min(most, 2 + random.int(2)) : 1
  }

  /** Who visits in this step, once for every visit. */
  function guests(step: number, count: number): SeedVisitor[] {
    const list: SeedVisitor[] = []
    const add = (visitor: SeedVisitor) => {
      visitor.pending = together(visitor, count - list.length)
      for (let i = 0; i < visitor.pending; i++) list.push(visitor)
    }
    const due = wheel.get(step) ?? []
    wheel.delete(step)
    let taken = 0
    const oldMax = Math.max(0, count - Math.ceil(count * NEW_SHARE))
    while (taken < due.length && list.length < oldMax) add(due[taken++] as SeedVisitor)
    while (list.length < count) add(newVisitor())
    // Whoever found no room comes with the next step.
    for (; taken < due.length; taken++) put(step + 1, due[taken] as SeedVisitor)
    for (let last = list.length - 1; last > 0; last--) {
      const other = random.int(last + 1)
      const held = list[last] as SeedVisitor
      list[last] = list[other] as SeedVisitor
      list[other] = held
    }
    return list
  }

  const stepsOf = (visitor: SeedVisitor): number => {
    const days =
      visitor.gapDays < 1 ? random.exponential(visitor.gapDays) : Math.round(random.exponential(visitor.gapDays))
    const habit = (random.float() - 0.5) * 3 * HOUR_MS
    return Math.max(1, Math.round((days * DAY_MS + habit) / stepMs))
  }

  return {
    steps,
    step(at, visit, leave) {
      const count = (upTo[at] as number) - (at === 0 ? 0 : (upTo[at - 1] as number))
      const start = from + at * stepMs
      const length = Math.min(stepMs, until - start)
      const list = guests(at, count)
      for (let i = 0; i < list.length; i++) {
        const visitor = list[i] as SeedVisitor
        visitor.left--
        visitor.pending--
        visit(visitor, start + Math.floor(((i + random.float()) * length) / count))
        if (visitor.pending > 0) continue
        const next = at + stepsOf(visitor)
        if (visitor.left > 0 && next < steps) put(next, visitor)
        else leave(visitor)
      }
      if (at === steps - 1) for (const due of wheel.values()) for (const visitor of due) leave(visitor)
    },
  }
}

/** How many events there are up to the end of each step. */
function quotas(from: number, until: number, stepMs: number, steps: number, events: number): number[] {
  const weights = Array.from({ length: steps }, (_, at) => {
    const start = new Date(from + at * stepMs)
    const share = Math.min(1, (until - start.getTime()) / stepMs)
    const grown = 1 + GROWTH * (at / steps)
    return (HOURS[start.getUTCHours()] as number) * (WEEKDAYS[start.getUTCDay()] as number) * grown * share
  })
  return cumulate(weights).map((share) => Math.round(share * events))
}
