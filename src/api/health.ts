// What machines ask a process: is it up, can it accept, what does it measure. No key, no JSON beyond what they need.

import type { HttpResponse } from '../http/message.ts'
import type { Http } from '../http/server.ts'

/** What an operator should know and can mend, while everything serves. */
export interface Advice {
  readonly code: 'ip_data_missing' | 'untrusted_proxy'
  readonly says: string
  readonly mend: string
}

export interface HealthNeeds {
  /** Each dependency by name: null when it serves, else a sentence that says what is wrong. */
  readonly checks: () => Readonly<Record<string, string | null>>
  /** Facts worth knowing that do not stop anything from being accepted. */
  readonly info: () => Readonly<Record<string, unknown>>
  readonly metrics: () => Promise<string>
  readonly metricsContentType: string
}

/** For where anybody may ask: whether, and not why not. */
export function serveBareHealth(http: Pick<Http, 'route'>, needs: Pick<HealthNeeds, 'checks'>): void {
  serveReadiness(http, needs, () => ({}))
}

function serveReadiness(
  http: Pick<Http, 'route'>,
  needs: Pick<HealthNeeds, 'checks'>,
  detail: (checks: ReturnType<HealthNeeds['checks']>, failing: readonly string[]) => object,
): void {
  http.route('GET', '/healthz', () => json(200, { status: 'ok' }))
  http.route('GET', '/readyz', () => {
    const checks = needs.checks()
    const failing = Object.keys(checks).filter((name) => checks[name] !== null)
    const status = failing.length === 0 ? 'ready' : 'unavailable'
    return json(failing.length === 0 ? 200 : 503, { status, ...detail(checks, failing) })
  })
}

const json = (status: number, body: unknown): HttpResponse => ({
  status,
  headers: [['Cache-Control', 'no-store'], ...(status === 503 ? [['Retry-After', '1'] as const] : [])],
  body: JSON.stringify(body),
})

export function serveHealth(http: Pick<Http, 'route'>, needs: HealthNeeds): void {
  serveReadiness(http, needs, (checks, failing) => ({ failing, checks, ...needs.info() }))
  http.route('GET', '/metrics', async () => ({
    status: 200,
    contentType: needs.metricsContentType,
    body: await needs.metrics(),
  }))
}
