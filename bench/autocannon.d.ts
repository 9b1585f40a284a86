// The part of autocannon the benchmarks use; the package ships no types.
declare module 'autocannon' {
  interface Client {
    setHeadersAndBody(headers: Record<string, string>, body: string): void
    on(event: 'response', listener: () => void): void
  }
  interface Options {
    url: string
    connections: number
    duration: number
    overallRate: number
    setupClient: (client: Client) => void
    requests: { method: string; path: string }[]
  }
  interface Result {
    requests: { average: number }
    latency: { p50: number; p99: number }
    non2xx: number
  }
  // biome-ignore lint/style/noDefaultExport: it is what the package has
  export default function autocannon(options: Options): Promise<Result>
}
