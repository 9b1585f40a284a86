// The load: browsers and servers that identify devices over kept connections, keep the tokens they get, repeat themselves
// now and then, and repeat what got no answer with the same nonce and the same bytes.

import { Agent } from 'node:http'
import type { Rng } from '../helpers/rng.ts'
import type { Keys } from '../helpers/server.ts'
import { type Device, makeDevice } from './bodies.ts'
import { call } from './http.ts'
import type { Attempt, Ledger } from './ledger.ts'

export interface LoadConfig {
  readonly random: Rng
  readonly ledger: Ledger
  readonly keys: Keys
  readonly url: string
  readonly connections: number
}

export interface Load {
  readonly agent: Agent
  /** Identifies until `signal` aborts and everything sent has its outcome. */
  run(signal: AbortSignal): Promise<void>
  /** Repeats every attempt that has no answer until it has one; what gets none in time is a violation. */
  settle(msMax: number): Promise<number>
  /** Identifies a device that was never seen and carries no token. */
  probe(): Promise<Attempt>
  repeat(attempt: Attempt): Promise<void>
  close(): void
}

const DEVICES_MAX = 5_000
const NEW_SHARE = 0.15
const TOKEN_SHARE = 0.75
const REPEAT_SHARE = 0.02
const SECRET_SHARE = 0.3
const PAUSE_MS = 25
const ACTIONS = ['login', 'payment', 'view', 'signup']

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

export function openLoad({ random, ledger, keys, url, connections }: LoadConfig): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const devices: Device[] = []
  const byNumber = new Map<number, Device>()
  const unsettled = new Set<Attempt>()
  let made = 0

  function newDevice(): Device {
    const device = makeDevice(random, made++)
    if (devices.length < DEVICES_MAX) devices.push(device)
    else devices[random.int(devices.length)] = device
    byNumber.set(device.number, device)
    return device
  }

  function attemptFor(device: Device, withToken: boolean): Attempt {
    const { request, ip, account } = device
    const key = random.chance(SECRET_SHARE) ? 'secret' : 'public'
    const action = random.pick(ACTIONS)
    const amount = random.int(1_000)
    const number = ledger.attempts.length
    const nonce = `${String(number).padStart(10, '0')}-${Buffer.from(random.bytes(9)).toString('base64url')}`
    const body = JSON.stringify({
      nonce,
      sdk: { name: 'js', version: '1.0.0' },
      storageToken: withToken ? device.token : null,
      ...(account === null ? {} : { linkedId: account }),
      tag: { action, amount, number },
      url: `https://shop.example/${action}`,
      referrer: '',
      ...request.body,
      ...(key === 'secret' ? { ip, userAgent: request.userAgent, headers: request.headers } : {}),
    })
    const headers: Record<string, string> =
      key === 'secret'
        ? { 'content-type': 'application/json', authorization: `Bearer ${keys.secret}` }
        : { ...request.headers, 'content-type': 'text/plain', 'x-forwarded-for': ip }
    headers['content-length'] = String(Buffer.byteLength(body))
    const attempt = ledger.add({ number, nonce, key, device: device.number, facts: { account, action, amount }, headers, body })
    unsettled.add(attempt)
    return attempt
  }

  async function send(attempt: Attempt): Promise<boolean> {
    const query = attempt.key === 'public' ? `?key=${keys.public}` : ''
    const { headers, body } = attempt
    const outcome = await call(agent, { method: 'POST', url: `${url}/v1/identify${query}`, headers, body })
    ledger.record(attempt, outcome)
    if (outcome.status !== 200) return false
    const device = byNumber.get(attempt.device)
    if (device !== undefined) device.token = (JSON.parse(outcome.text) as { storageToken: string }).storageToken
    return true
  }

  function finish(attempt: Attempt): void {
    if (attempt.answer === null) return
    unsettled.delete(attempt)
    attempt.body = ''
  }

  async function visit(): Promise<void> {
    const device = devices.length === 0 || random.chance(NEW_SHARE) ? newDevice() : random.pick(devices)
    const attempt = attemptFor(device, random.chance(TOKEN_SHARE))
    const twice = random.chance(REPEAT_SHARE)
    const together = twice && random.chance(0.5)
    const sent = together ? await Promise.all([send(attempt), send(attempt)]) : [await send(attempt)]
    if (twice && !together) sent.push(await send(attempt))
    finish(attempt)
    if (sent.includes(false)) await pause(PAUSE_MS)
  }

  async function work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && ledger.violation() === null) await visit()
  }

  return {
    agent,
    async run(signal) {
      await Promise.all(Array.from({ length: connections }, () => work(signal)))
    },

    async settle(msMax) {
      const deadline = performance.now() + msMax
      const open = [...unsettled]
      const count = open.length
      async function repeatNext(): Promise<void> {
        for (let attempt = open.pop(); attempt !== undefined; attempt = open.pop()) {
          await send(attempt)
          while (attempt.answer === null && performance.now() < deadline) {
            await pause(PAUSE_MS)
            await send(attempt)
          }
          if (attempt.answer === null) ledger.violate(attempt.nonce, 'no answer after the restart', attempt.history)
          finish(attempt)
        }
      }
      await Promise.all(Array.from({ length: connections }, repeatNext))
      return count
    },

    async probe() {
      const attempt = attemptFor(newDevice(), false)
      await send(attempt)
      if (attempt.answer !== null) unsettled.delete(attempt)
      return attempt
    },
    async repeat(attempt) {
      await send(attempt)
    },
    close: () => agent.destroy(),
  }
}
