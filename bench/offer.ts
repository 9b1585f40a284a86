// Identifications at an even rate, or as fast as they are answered: visitors who were here before, one in five of them without a token.
// `offer-process.ts` does it in a process of its own.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import autocannon from 'autocannon'
import { pace, requestText } from './pace.ts'
import { makeDevice, TOKENLESS_SHARE } from './population.ts'

export interface Load {
  readonly offered: number
  readonly answered: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly refused: number
}

/** Whom to send to. */
export interface Addressee {
  readonly url: string
  readonly publicKey: string
}

export interface Visitor {
  readonly headers: Readonly<Record<string, string>>
  readonly rest: string
}

const CONNECTIONS = 128
const ENROLLED_AT_ONCE = 50

function visitorOf(i: number, token: string | null): Visitor {
  const { body, ip, userAgent } = makeDevice(i + 1)
  return {
    headers: { 'content-type': 'text/plain', 'x-forwarded-for': ip, 'user-agent': userAgent },
    rest: `,"storageToken":${JSON.stringify(token)},${JSON.stringify(body).slice(1)}`,
  }
}

/** First visits of so many devices, and what they send when they come back. */
export async function enrol({ url, publicKey }: Addressee, devices: number): Promise<Visitor[]> {
  const visitors: Visitor[] = []
  for (let from = 0; from < devices; from += ENROLLED_AT_ONCE) {
    const some = Array.from({ length: Math.min(ENROLLED_AT_ONCE, devices - from) }, async (_, k) => {
      const { headers, rest } = visitorOf(from + k, null)
      const body = `{"nonce":"enrol-${String(from + k).padStart(16, '0')}"${rest}`
      const response = await fetch(`${url}/v1/identify?key=${publicKey}`, { method: 'POST', headers, body })
      const { storageToken } = (await response.json()) as { storageToken: string }
      return visitorOf(from + k, (from + k) % 100 >= TOKENLESS_SHARE * 100 ? storageToken : null)
    })
    visitors.push(...(await Promise.all(some)))
  }
  return visitors
}

let sent = 0

const pathOf = (publicKey: string) => `/v1/identify?key=${publicKey}`

/** Who comes next, and what is sent for it. */
function nextOf(visitors: readonly Visitor[]): Visitor & { readonly body: string } {
  const visitor = visitors[(sent * 7919) % visitors.length] as Visitor
  return { ...visitor, body: `{"nonce":"load-${String(sent++).padStart(16, '0')}"${visitor.rest}` }
}

async function offerAtOnce(
  { url, publicKey }: Addressee,
  visitors: readonly Visitor[],
  seconds: number,
): Promise<Load> {
  const { requests, latency, non2xx, errors } = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    setupClient(client) {
      const next = () => {
        const { headers, body } = nextOf(visitors)
        client.setHeadersAndBody(headers, body)
      }
      next()
      client.on('response', next)
    },
    requests: [{ method: 'POST', path: pathOf(publicKey) }],
  })
  const answered = Math.round((requests.total - non2xx) / seconds)
  const refused = non2xx + errors
  return { offered: answered, answered, p50Ms: latency.p50, p99Ms: latency.p99, refused }
}

/** `offered`: per second, evenly; null: as fast as they are answered over a number of connections. */
export async function offer(
  to: Addressee,
  visitors: readonly Visitor[],
  offered: number | null,
  seconds: number,
): Promise<Load> {
  if (offered === null) return offerAtOnce(to, visitors, seconds)
  const next = () => {
    const { headers, body } = nextOf(visitors)
    return requestText(pathOf(to.publicKey), headers, body)
  }
  return { offered, ...(await pace({ port: Number(new URL(to.url).port), perSecond: offered, seconds, next })) }
}

export interface Offering {
  readonly offered: number | null
  readonly seconds: number
}

export interface Offerer {
  offer(offering: Offering): Promise<Load>
  close(): void
}

/** Enrols its visitors first. One at a time for a server: two would send the same nonces. `niceness`: from 0 to 19, who gives way most. */
export async function openOfferer(to: Addressee, devices: number, niceness = 0): Promise<Offerer> {
  const script = new URL('./offer-process.js', import.meta.url)
  const child: ChildProcess = fork(script, [JSON.stringify(to), String(devices), String(niceness)])
  const answer = async (): Promise<unknown> => {
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the load generator ended with ${code}`)
    })
    const [message] = await Promise.race([once(child, 'message'), ended])
    return message
  }
  await answer()
  return {
    async offer(offering) {
      child.send(offering)
      return (await answer()) as Load
    },
    close: () => void child.kill(),
  }
}
