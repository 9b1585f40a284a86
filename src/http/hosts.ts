// How many connections of one host have a request under way, so that no host keeps all others out.

export interface HostsConfig {
  /** Requests under way from one host, each on a connection of its own; more are refused. */
  readonly max: number
  /** What counts as one host with this address; null: it is not counted. */
  readonly hostOf: (address: string) => string | null
}

export interface Host {
  underWay: number
}

export interface Hosts {
  /** The host, to be given back with `leave`; null: it has as many as it may. */
  enter(address: string): Host | null
  leave(host: Host): void
}

/** So many hosts stay known without a request under way at least: most come back at once. */
const IDLE_MAX = 10_000

export function openHosts({ max, hostOf }: HostsConfig): Hosts {
  const hosts = new Map<string, Host>()
  const uncounted: Host = { underWay: 0 }
  let roomUpTo = IDLE_MAX

  function makeRoom(): void {
    for (const [name, { underWay }] of hosts) if (underWay === 0) hosts.delete(name)
    // As long as those that stay, so that looking through them costs each new one little.
    roomUpTo = 2 * hosts.size + IDLE_MAX
  }

  return {
    enter(address) {
      const name = hostOf(address)
      let host = name === null ? uncounted : hosts.get(name)
      if (host === undefined) {
        if (hosts.size >= roomUpTo) makeRoom()
        host = { underWay: 0 }
        hosts.set(name as string, host)
      }
      if (host !== uncounted && host.underWay >= max) return null
      host.underWay++
      return host
    },
    leave(host) {
      host.underWay--
    },
  }
}
