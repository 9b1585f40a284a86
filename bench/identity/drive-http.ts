// Visits sent to a real embedded server with a public test key, as browsers would: own headers, own address and time by
// `mock`, many in flight, one at a time per device since each needs the token of the one before.

import { Agent, request } from 'node:http'
import { isoTime } from '../../src/events/present.ts'
import { cleanUp, startServer } from '../../test/helpers/server.ts'
import { type Answer, createStorages } from './answer.ts'
import type { Drive } from './drive-direct.ts'
import type { Visit } from './population.ts'

const IN_FLIGHT_MAX = 64
const ENV = { FINGERPOST_RETENTION_EVENTS_DAYS: '3650', FINGERPOST_DECISION_WAIT_MS: '60000' }

interface Target {
  readonly port: number
  readonly key: string
}

interface Result {
  readonly visitorId: string
  readonly confidence: number
  readonly storageToken: string
}

/** One identification over HTTP; rejects when the answer is no 200. */
export function identify(agent: Agent, { port, key }: Target, visit: Visit, token: string | null): Promise<Result> {
  const mock = { at: isoTime(visit.atMs), ip: visit.ip }
  const body = Buffer.from(JSON.stringify({ ...visit.body, storageToken: token, mock }))
  const headers = {
    ...visit.headers,
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': body.length,
  }
  return new Promise((resolve, reject) => {
    const call = request({ port, host: '127.0.0.1', method: 'POST', path: '/v1/identify', agent, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        if (answer.statusCode === 200) resolve(JSON.parse(text) as Result)
        else reject(new Error(`status ${answer.statusCode}: ${text.slice(0, 300)}`))
      })
    })
    call.on('error', reject)
    call.end(body)
  })
}

/** Starts a server of its own and ends it with the last visit. */
export function createHttpDrive(): Drive {
  return async (visits, told) => {
    const server = await startServer({ env: ENV })
    const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT_MAX })
    const storages = createStorages()
    const target = { port: server.port, key: server.keys.testPublic }
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
      await server.stop()
      await cleanUp()
    }
  }
}
