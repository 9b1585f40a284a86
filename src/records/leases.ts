// Who looks after what among processes of one role: leases on names, spread evenly and handed over when a process joins,
// leaves or dies. They only save work: what two holders at once may do to each other is for the fences to prevent.

import type { Bus } from '../bus/bus.ts'
import type { Commit, Kv, KvKey } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { onHint, publishHint } from './hints.ts'
import { SYSTEM, scanAll, under } from './scopes.ts'

const MEMBER = 'member'
const LEASE = 'lease'
/** A process that was not heard of for this long is taken for dead. */
const LEASE_TTL_MS = 3_000
const ROUND_MS = 750

export interface LeasesNeeds {
  readonly kv: Pick<Kv, 'scan' | 'commit'>
  readonly bus: Bus
  readonly clock: Clock
  /** Processes of one group share its names. */
  readonly group: string
  /** This process, unlike any other that ever was. */
  readonly member: string
  readonly names: readonly string[]
  /** Works on a name until `signal` aborts. Rejecting ends the tenure of this name; it may come back. */
  readonly hold: (name: string, signal: AbortSignal) => Promise<void>
  readonly report: (error: unknown) => void
}

interface Lease {
  readonly owner: string
}

interface Held {
  version: number
  readonly ending: AbortController
  /** The work, and giving the name back after it. */
  done: Promise<void>
}

/** A view of the group: what everybody computes the same shares from. */
export interface View {
  readonly members: readonly string[]
  /** Owner by name; a name without one is free. */
  readonly owners: ReadonlyMap<string, string>
}

export interface LeaseShare {
  readonly take: readonly string[]
  readonly giveBack: readonly string[]
}

/**
 * What `member` takes and gives back so that no two members differ by more than one name. Everybody with the same view
 * comes to shares that fit each other, and no name moves without need.
 */
export function leaseShareOf(member: string, names: readonly string[], { members, owners }: View): LeaseShare {
  const held = new Map<string, string[]>(members.map((id) => [id, []]))
  for (const name of names) held.get(owners.get(name) ?? '')?.push(name)
  const mine = held.get(member)
  if (mine === undefined) return { take: [], giveBack: [] }
  const count = (id: string) => held.get(id)?.length ?? 0

  // Those who hold most may keep the odd ones.
  const byHeld = [...members].sort((a, b) => count(b) - count(a) || (a < b ? -1 : 1))
  const floor = Math.floor(names.length / members.length)
  const odd = names.length % members.length
  const target = floor + (byHeld.indexOf(member) < odd ? 1 : 0)
  const giveBack = mine.length > target ? mine.slice(target) : []

  const counts = new Map(members.map((id) => [id, count(id)]))
  const take: string[] = []
  for (const name of names) {
    const owner = owners.get(name)
    if (owner !== undefined) continue
    const [poorest] = [...counts].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1))
    if (poorest === undefined) break
    counts.set(poorest[0], poorest[1] + 1)
    if (poorest[0] === member) take.push(name)
  }
  return { take, giveBack }
}

/** The processes of a group that are alive. */
export async function listMembers(kv: Pick<Kv, 'scan'>, group: string): Promise<string[]> {
  const members: string[] = []
  for await (const { key } of scanAll(kv, SYSTEM, MEMBER, under(group))) members.push(key[1].slice(group.length + 1))
  return members
}

/** Holds its share of the names until `signal` aborts; resolves when all work has ended and every lease is given back. */
export async function runLeases(needs: LeasesNeeds, signal: AbortSignal): Promise<void> {
  const { kv, bus, clock, group, member, names } = needs
  const held = new Map<string, Held>()
  const memberKey: KvKey = [MEMBER, `${group}/${member}`]
  const leaseKey = (name: string): KvKey => [LEASE, `${group}/${name}`]
  const putLease = (name: string) => ({ key: leaseKey(name), value: { owner: member }, ttlMs: LEASE_TTL_MS })
  let wake = new AbortController()
  const rouse = () => wake.abort()
  const unsubscribe = onHint(bus, 'leases.changed', (hint) => {
    if (hint.group === group) rouse()
  })
  signal.addEventListener('abort', rouse)
  const tell = () => publishHint(bus, 'leases.changed', { group })

  async function view(): Promise<View & { readonly versions: ReadonlyMap<string, number> }> {
    const members = await listMembers(kv, group)
    const owners = new Map<string, string>()
    const versions = new Map<string, number>()
    for await (const { key, value, version } of scanAll<Lease>(kv, SYSTEM, LEASE, under(group))) {
      const name = key[1].slice(group.length + 1)
      owners.set(name, value.owner)
      versions.set(name, version)
    }
    return { members, owners, versions }
  }

  async function work(name: string, mine: Held): Promise<void> {
    try {
      await needs.hold(name, mine.ending.signal)
    } catch (error) {
      needs.report(error)
      // What cannot be worked on now is tried again, here or elsewhere, but not at once.
      await clock.sleep(ROUND_MS, mine.ending.signal)
    }
    held.delete(name)
    // Not given back when the process was paused for so long that it belongs to another one by now.
    const check = [[leaseKey(name), mine.version]] as const
    await kv.commit([{ scope: SYSTEM, check, drop: [leaseKey(name)] }]).catch(needs.report)
    tell()
  }

  /** Renews what is held and takes what is free; whatever was lost or is too much ends. */
  async function round(): Promise<void> {
    await kv.commit([{ scope: SYSTEM, put: [{ key: memberKey, value: {}, ttlMs: LEASE_TTL_MS }] }])
    const seen = await view()
    const { take, giveBack } = leaseShareOf(member, names, seen)
    const wanted: { readonly name: string; readonly commit: Commit }[] = []
    for (const [name, mine] of held) {
      if (seen.owners.get(name) === member) mine.version = seen.versions.get(name) as number
      else mine.ending.abort()
      if (giveBack.includes(name)) mine.ending.abort()
      const check = [[leaseKey(name), mine.version]] as const
      if (!mine.ending.signal.aborted) wanted.push({ name, commit: { scope: SYSTEM, check, put: [putLease(name)] } })
    }
    for (const name of take) {
      const check = [[leaseKey(name), null]] as const
      if (!held.has(name)) wanted.push({ name, commit: { scope: SYSTEM, check, put: [putLease(name)] } })
    }
    const won = await kv.commit(wanted.map(({ commit }) => commit))
    const versions = won.includes(true) ? (await view()).versions : new Map<string, number>()
    for (const [at, { name }] of wanted.entries()) {
      const mine = held.get(name)
      const version = versions.get(name)
      if (mine !== undefined && won[at] !== true) mine.ending.abort()
      if (mine !== undefined && version !== undefined && won[at] === true) mine.version = version
      if (mine === undefined && won[at] === true && version !== undefined) {
        const fresh: Held = { version, ending: new AbortController(), done: Promise.resolve() }
        held.set(name, fresh)
        fresh.done = work(name, fresh)
      }
    }
  }

  while (!signal.aborted) {
    wake = new AbortController()
    // A store that is down takes no name away: the fences hold, and nobody else can take one either.
    await round().catch(needs.report)
    await clock.sleep(ROUND_MS, wake.signal)
  }
  unsubscribe()
  for (const { ending } of held.values()) ending.abort()
  await Promise.all([...held.values()].map(({ done }) => done))
  await kv.commit([{ scope: SYSTEM, drop: [memberKey] }]).catch(needs.report)
  tell()
}
