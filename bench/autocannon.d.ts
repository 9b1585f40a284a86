// What the benchmarks use of autocannon, which ships no types.

declare module 'autocannon' {
  interface Client {
    setHeadersAndBody(headers: Readonly<Record<string, string>>, body: string): void
    on(event: 'response', listener: () => void): void
  }
  interface Options {
    readonly url: string
    readonly connections: number
    readonly duration: number
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
    /** Requests per second of all connections together. */
    readonly overallRate?: number
    readonly setupClient?: (client: Client) => void
    readonly requests?: readonly { readonly method: string; readonly path: string }[]
  }
  interface Result {
    readonly requests: { readonly average: number; readonly total: number }
    readonly latency: { readonly p50: number; readonly p99: number }
    readonly non2xx: number
    readonly errors: number
  }
  // biome-ignore lint/style/noDefaultExport: it is what the package has
  export default function autocannon(options: Options): Promise<Result>
}
