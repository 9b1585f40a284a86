// Visits sent to a real embedded server with a public test key, as browsers would: own headers, own address and time by
// `mock`, many in flight, one at a time per device since each needs the token of the one before.

import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { isoTime } from '../../src/events/present.ts'
import { type Answer, createStorages } from './answer.ts'
import type { Drive } from './drive-direct.ts'
import type { Visit } from './population.ts'

const IN_FLIGHT_MAX = 256
const TRIES_MAX = 5
/** Visits under way at once lie at most this far apart, so that devices do not overtake each other by much. */
const SPAN_MS_MAX = 86_400_000
/** What the server needs: visits of long ago are taken, and decisions waited for. */
export const SERVER_ENV = { FINGERPOST_RETENTION_EVENTS_DAYS: '3650', FINGERPOST_DECISION_WAIT_MS: '60000' }

export interface Target {
  readonly port: number
  /** A public key of the test environment. */
  readonly key: string
}

interface Result {
  readonly visitorId: string
  readonly confidence: number
  readonly storageToken: string
}

/** One identification over HTTP; rejects when the answer is no 200. */
export async function identify(agent: Agent, target: Target, visit: Visit, token: string | null): Promise<Result> {
  const mock = { at: isoTime(visit.atMs), ip: visit.ip }
  const body = Buffer.from(JSON.stringify({ ...visit.body, nonce: randomUUID(), storageToken: token, mock }))
  for (let tries = 1; ; tries++) {
    try {
      return await post(agent, target, visit, body)
    } catch (error) {
      // A connection that the server closes as idle may be the one that is used again. With its nonce a visit counts once.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET' || tries === TRIES_MAX) throw error
    }
  }
}

function post(agent: Agent, { port, key }: Target, visit: Visit, body: Buffer): Promise<Result> {
  const headers = {
    ...visit.headers,
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': body.length,
  }
  return new Promise((resolve, reject) => {
    const call = request(
      { port, host: '127.0.0.1', method: 'POST', path: '/v1/identify', agent, headers },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('error', reject)
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          if (answer.statusCode === 200) resolve(JSON.parse(text) as Result)
          else reject(new Error(`status ${answer.statusCode}: ${text.slice(0, 300)}`))
        })
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

export function createHttpDrive(target: Target): Drive {
  return async (visits, told) => {
    const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT_MAX })
    const storages = createStorages()
    const latest = new Map<number, Promise<Answer>>()
    const flying: { visit: Visit; answer: Promise<Answer> }[] = []

    async function send(visit: Visit, before: Promise<Answer> | undefined): Promise<Answer> {
      await before
      const result = await identify(agent, target, visit, storages.read(visit))
      storages.write(visit, result.storageToken)
      return { id: result.visitorId, confidence: result.confidence }
    }

    async function land(): Promise<void> {
      const first = flying.shift()
      if (first === undefined) return
      told(first.visit, await first.answer)
      if (latest.get(first.visit.truth.device) === first.answer) latest.delete(first.visit.truth.device)
    }

    try {
      for (const visit of visits) {
        const { device } = visit.truth
        while (flying.length > 0 && visit.atMs - (flying[0]?.visit.atMs ?? 0) > SPAN_MS_MAX) await land()
        const answer = send(visit, latest.get(device))
        // Looked at when its turn comes; until then a failure is nobody's.
        answer.catch(() => undefined)
        latest.set(device, answer)
        flying.push({ visit, answer })
        if (flying.length >= IN_FLIGHT_MAX) await land()
      }
      while (flying.length > 0) await land()
    } finally {
      agent.destroy()
    }
  }
}
