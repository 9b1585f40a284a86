// The visits whose price `bench budget` asks: devices of bench/population.ts that come again and again, most of them with the token
// they were given, as the browser's SDK sends them. Everything is drawn from one seed, and time passes as at 2,000 visits a second.

import type { IdentifyMeta } from '../src/domain/identify.ts'
import { makeRequestId } from '../src/domain/ids.ts'
import { verifyToken } from '../src/identity/token.ts'
import { must } from '../src/lib/must.ts'
import { rng } from '../test/helpers/rng.ts'
import { ENV, WORKSPACE } from './identity/record.ts'
import { makeDevice, TOKENLESS_SHARE } from './population.ts'

const VISITS_PER_MS = 2
const START_MS = Date.UTC(2026, 10, 1)

export interface BudgetVisit {
  readonly device: number
  readonly seq: number
  readonly token: string | null
  /** The body as it comes. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly meta: IdentifyMeta
  /** All headers, in order of arrival. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Four bytes, as the socket says it. */
  readonly peer: ArrayBuffer
}

const headersOf = (userAgent: string, bytes: number): (readonly [string, string])[] => [
  ['host', 'id.shop.example'],
  ['connection', 'keep-alive'],
  ['content-length', String(bytes)],
  ['sec-ch-ua-platform', '"Windows"'],
  ['user-agent', userAgent],
  ['sec-ch-ua', '"Chromium";v="141", "Not?A_Brand";v="8"'],
  ['content-type', 'text/plain;charset=UTF-8'],
  ['sec-ch-ua-mobile', '?0'],
  ['accept', '*/*'],
  ['origin', 'https://shop.example'],
  ['sec-fetch-site', 'same-site'],
  ['sec-fetch-mode', 'cors'],
  ['sec-fetch-dest', 'empty'],
  ['referer', 'https://shop.example/'],
  ['accept-encoding', 'gzip, deflate, br, zstd'],
  ['accept-language', 'en-US,en;q=0.9'],
]

/** `next` makes one more visit; `first` only of devices that never came. */
export function openVisits(devices: number, seed: number) {
  const { int, float, bytes: random } = rng(seed)
  const population = Array.from({ length: devices }, (_, i) => {
    const { body, userAgent, ip } = makeDevice(i + 1)
    return {
      rest: JSON.stringify(body).slice(1),
      userAgent,
      ip,
      peer: Uint8Array.from(ip.split('.').map(Number)).buffer,
    }
  })
  const tokens: (string | null)[] = population.map(() => null)
  let seq = 0

  function visit(device: number, token: string | null): BudgetVisit {
    const { rest, userAgent, ip, peer } = must(population[device], 'a device')
    const atMs = START_MS + Math.floor(++seq / VISITS_PER_MS)
    const told = `{"storageToken":${JSON.stringify(token)},"nonce":"n${String(seq).padStart(15, '0')}",`
    const bytes = new TextEncoder().encode(told + rest)
    return {
      device,
      seq,
      token,
      bytes,
      peer,
      headers: headersOf(userAgent, bytes.length),
      meta: {
        requestId: makeRequestId(atMs, random),
        acceptedAt: atMs,
        workspace: WORKSPACE.id,
        env: ENV,
        keyKind: 'public',
        ip,
        headers: { 'user-agent': userAgent, 'accept-language': 'en-US,en;q=0.9' },
        token: token === null ? null : verifyToken(WORKSPACE.tokenSecret, WORKSPACE.id, ENV, token),
        tokenForged: false,
        replyTo: 'bench',
      },
    }
  }

  return {
    random,
    first: (device: number) => visit(device, null),
    next(): BudgetVisit {
      const device = int(devices)
      return visit(device, float() < TOKENLESS_SHARE ? null : (tokens[device] ?? null))
    },
    /** What the device keeps of its answer. */
    answered(device: number, body: string): void {
      tokens[device] = (JSON.parse(body) as { readonly storageToken: string }).storageToken
    },
    nowMs: () => START_MS + Math.floor(seq / VISITS_PER_MS),
  }
}
