// The public API as a client sees it: one call per request, with everything an answer has.

import { type Description, fetchDescription } from './described.ts'
import { type Launched, startServer } from './server.ts'
import { errorFaults } from './shapes.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
  readonly body: any
}

export interface Call {
  /** null: no Authorization header. */
  readonly key?: string | null
  readonly body?: unknown
  /** Sent as it is instead of `body`. */
  readonly raw?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

const HANG_MS = 60_000
/** The history opens after the port, and answers late on a busy machine. */
const UNAVAILABLE_MS_MAX = 30_000

/** A server as a client knows it. */
export type Remote = Pick<Launched, 'url' | 'port' | 'keys' | 'operatorToken' | 'pid'>

export type Client = ReturnType<typeof clientOf>

export function clientOf(server: Remote) {
  let described: Promise<Description | null> | null = null

  /**
   * Fails when there is no answer within a minute, or one that is not as the server describes it. A read that is refused for
   * now is asked again for half a minute.
   */
  async function send(method: string, path: string, call: Call = {}): Promise<Answer> {
    const isRead = method === 'GET' && path.startsWith('/v1/')
    return eventually(
      () => sendOnce(method, path, call),
      ({ status }) => !isRead || status !== 503,
      UNAVAILABLE_MS_MAX,
    )
  }

  async function sendOnce(method: string, path: string, { key, body, raw, headers = {} }: Call): Promise<Answer> {
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(server.url + path, {
      method,
      headers: {
        ...(key === null ? {} : { Authorization: `Bearer ${key ?? server.keys.secret}` }),
        ...(sent === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent as string }),
      signal: AbortSignal.timeout(HANG_MS),
    })
    const text = await response.text()
    described ??= fetchDescription(server.url)
    const faults = (await described)?.faults({ method, path, status: response.status, headers: response.headers, text })
    if (faults !== undefined && faults.length > 0) throw new Error(`not as described: ${faults.join('; ')}`)
    const isJson = response.headers.get('content-type') === 'application/json'
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : null,
    }
  }

  return {
    send,
    identify: (body: unknown, call: Call = {}) => send('POST', '/v1/identify', { ...call, body }),
    get: (path: string, key?: string) => send('GET', path, key === undefined ? {} : { key }),
    admin: (method: string, path: string, body?: unknown) =>
      send(method, `/admin/v1${path}`, { key: server.operatorToken, ...(body === undefined ? {} : { body }) }),
  }
}

/** The error an answer is. Throws when its body is not exactly as the contract has it. */
export function errorOf({ status, body, text }: Answer): { code: string; field: string | undefined } {
  const faults = errorFaults(status, body)
  if (faults.length > 0) throw new Error(`${status} ${text.slice(0, 200)}: ${faults}`)
  return { code: body.error.code, field: body.error.field }
}

/** A server of its own and its client. */
export async function openApi(env: Readonly<Record<string, string>> = {}) {
  const server = await startServer({ env })
  return { server, ...clientOf(server) }
}

/**
 * Asks until `holds`, with pauses that grow from `everyMs` to five times that, since what is asked costs the server as well. Throws
 * with the last answer when that takes longer than `waitMs`.
 */
export async function eventually<T>(
  ask: () => Promise<T>,
  holds: (answer: T) => boolean,
  waitMs = 60_000,
  everyMs = 50,
): Promise<T> {
  const until = performance.now() + waitMs
  for (let pauseMs = everyMs; ; pauseMs = Math.min(pauseMs * 1.5, everyMs * 5)) {
    const answer = await ask()
    if (holds(answer)) return answer
    if (performance.now() > until) {
      throw new Error(`not within ${waitMs} ms; the last answer: ${(JSON.stringify(answer) ?? 'none').slice(0, 2_000)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

export const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36'
export const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
export const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1'

/** What the browser SDK sends of a desktop Chrome, in the vocabulary of the contract. */
export function browserBody(gpu = 'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11 vs_5_0 ps_5_0, D3D11)') {
  const value = <T>(of: T) => ({ value: of, ms: 1.5 })
  return {
    sdk: { name: 'js', version: '1.0.0' },
    storageToken: null as string | null,
    url: 'https://shop.example/login?next=%2F#top',
    referrer: 'https://search.example/',
    components: {
      userAgent: value(CHROME),
      platform: value('Win32'),
      vendor: value('Google Inc.'),
      languages: value([['en-GB', 'en']]),
      timezone: value('Europe/London'),
      hardwareConcurrency: value(12),
      deviceMemory: value(8),
      screenResolution: value([2560, 1440]),
      devicePixelRatio: value(1.25),
      colorDepth: value(24),
      canvas: value({ winding: true, geometry: 'a1b2c3d4', text: 'e5f6a7b8', stable: true }),
      audio: value(124.04347527516074),
      webGlBasics: value({
        vendor: 'Google Inc. (NVIDIA)',
        renderer: gpu,
        vendorUnmasked: 'Google Inc. (NVIDIA)',
        rendererUnmasked: gpu,
      }),
      fonts: value(['Arial', 'Calibri', 'Segoe UI']),
      touchSupport: value({ maxTouchPoints: 0, touchEvent: false, touchStart: false }),
      evalLength: value(33),
      lies: value([]),
      math: { error: 'NotSupported' },
      ourOwnThing: value({ kept: true }),
    } as Record<string, unknown>,
    automation: { webdriver: false, detectors: { anything: { bot: false } } },
  }
}
