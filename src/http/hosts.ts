// How many connections of one host have a request under way, so that no host keeps all others out.

export interface HostsConfig {
  /** Requests under way from one host, each on a connection of its own; more are refused. */
  readonly max: number
  /** What counts as one host with this address; null: it is not counted. */
  readonly hostOf: (address: string) => string | null
}

export interface Hosts {
  /** The host to be given back with `leave`, '' where none is counted; null: it has as many as it may. */
  enter(address: string): string | null
  leave(host: string): void
}

export function openHosts({ max, hostOf }: HostsConfig): Hosts {
  const counts = new Map<string, number>()
  return {
    enter(address) {
      const host = hostOf(address)
      if (host === null) return ''
      const count = counts.get(host) ?? 0
      if (count >= max) return null
      counts.set(host, count + 1)
      return host
    },
    leave(host) {
      if (host === '') return
      const count = (counts.get(host) ?? 1) - 1
      if (count === 0) counts.delete(host)
      else counts.set(host, count)
    },
  }
}
