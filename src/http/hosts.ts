// How many connections of one host have a request under way, so that no host keeps all others out.

import { addCount, newCounts, readCount, type SharedCounts } from '../lib/counts.ts'

export interface HostsConfig {
  /** Requests under way from one host, each on a connection of its own; more are refused. */
  readonly max: number
  /** What counts as one host with this address; null: it is not counted. */
  readonly hostOf: (address: string) => string | null
  /** Where all threads of the process count, of `HOST_CELLS`. Default: this thread alone. */
  readonly counts?: SharedCounts
}

const ROWS = 3
const ROW_CELLS = 65_536
/** Three hosts would have to share a cell each with another busy one before one of them is refused too early. */
export const HOST_CELLS = ROWS * ROW_CELLS

/** What one host is counted in: cells that other hosts may share as well, of which the lowest is closest to the truth. */
export interface Host {
  readonly cells: readonly number[]
  /** In this thread. */
  underWay: number
}

export interface Hosts {
  /** The host, to be given back with `leave`; null: it has as many as it may. */
  enter(address: string): Host | null
  leave(host: Host): void
}

/** So many hosts stay known without a request under way at least: most come back at once. */
const IDLE_MAX = 10_000

/** One of each row (a count-min sketch): where hosts meet in one row, they do not in another. */
function cellsOf(name: string): number[] {
  const cells: number[] = []
  for (let row = 0; row < ROWS; row++) {
    let hash = 0x811c9dc5 ^ (row * 0x9e3779b1)
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    cells.push(row * ROW_CELLS + (((hash ^ (hash >>> 13)) >>> 0) % ROW_CELLS))
  }
  return cells
}

export function openHosts({ max, hostOf, counts = newCounts(HOST_CELLS) }: HostsConfig): Hosts {
  const hosts = new Map<string, Host>()
  const uncounted: Host = { cells: [], underWay: 0 }
  let roomUpTo = IDLE_MAX

  function makeRoom(): void {
    for (const [name, { underWay }] of hosts) if (underWay === 0) hosts.delete(name)
    // As long as those that stay, so that looking through them costs each new one little.
    roomUpTo = 2 * hosts.size + IDLE_MAX
  }

  // By index, here and below: an iterator leaves an object behind for each cell.
  function addTo(cells: readonly number[], change: number): void {
    for (let i = 0; i < cells.length; i++) addCount(counts, cells[i] as number, change)
  }

  function leave(host: Host): void {
    host.underWay--
    addTo(host.cells, -1)
  }

  return {
    enter(address) {
      const name = hostOf(address)
      let host = name === null ? uncounted : hosts.get(name)
      if (host === undefined) {
        if (hosts.size >= roomUpTo) makeRoom()
        host = { cells: cellsOf(name as string), underWay: 0 }
        hosts.set(name as string, host)
      }
      if (host === uncounted) return host
      const { cells } = host
      addTo(cells, 1)
      host.underWay++
      // Looked at only when it is in all of them: of threads that come at once, the last finds the others in every cell.
      let underWay = Number.POSITIVE_INFINITY
      for (let i = 0; i < cells.length; i++) underWay = Math.min(underWay, readCount(counts, cells[i] as number))
      if (underWay <= max) return host
      leave(host)
      return null
    },
    leave,
  }
}
