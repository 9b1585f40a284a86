// The load: browsers and servers that identify devices over kept connections, keep the tokens they get, repeat themselves
// now and then, and repeat what got no answer with the same nonce and the same bytes.

import { Agent } from 'node:http'
import { type Device, makeDevice } from '../helpers/bodies.ts'
import type { Rng } from '../helpers/rng.ts'
import type { Keys } from '../helpers/server.ts'
import { call } from './http.ts'
import type { Answer, Attempt, Ledger } from './ledger.ts'

export interface LoadConfig {
  readonly random: Rng
  readonly ledger: Ledger
  readonly keys: Keys
  /** Where events are read. */
  readonly url: string
  /** Where identifications go: one of these for each request. Default: `url`. */
  readonly urls?: readonly string[]
  readonly connections: number
  readonly habits?: Habits
}

/** How clients behave. What is not given is as in the campaign. */
export interface Habits {
  /** Of visits by devices that were never seen. */
  readonly newShare?: number
  /** Of visits that can be repeated. */
  readonly nonceShare?: number
  /** Between two visits of a client, milliseconds. */
  readonly thinkMs?: number
}

export interface Load {
  readonly agent: Agent
  /** Identifies until `signal` aborts and everything sent has its outcome. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Asks again for everything that has no answer until it has one, and for what was answered last, which must be answered
   * alike. What gets no answer in time is a violation; what was sent without a nonce and is unknown is left so.
   */
  settle(msMax: number): Promise<void>
  /** Identifies a device that was never seen and carries no token. */
  probe(): Promise<Attempt>
  close(): void
}

const DEVICES_MAX = 5_000
const NEW_SHARE = 0.15
const TOKEN_SHARE = 0.75
const REPEAT_SHARE = 0.02
const NONCE_SHARE = 0.9
/** How many of the latest answers are asked for again after a restart. */
const LATEST_MAX = 40
const SECRET_SHARE = 0.3
const PAUSE_MS = 25
/** Of who asks again and again. */
const PAUSE_MS_MAX = 200
const ACTIONS = ['login', 'payment', 'view', 'signup']

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

export function openLoad({ random, ledger, keys, url, urls = [url], connections, habits = {} }: LoadConfig): Load {
  const { newShare = NEW_SHARE, nonceShare = NONCE_SHARE, thinkMs = 0 } = habits
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const devices: Device[] = []
  const byNumber = new Map<number, Device>()
  const unsettled = new Set<Attempt>()
  const latest: Attempt[] = []
  let made = 0

  const makeNonce = (number: number): string =>
    `${String(number).padStart(10, '0')}-${Buffer.from(random.bytes(9)).toString('base64url')}`

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
    const nonce = random.chance(nonceShare) ? makeNonce(number) : null
    const body = JSON.stringify({
      ...(nonce === null ? {} : { nonce }),
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
    const attempt = ledger.add({
      number,
      nonce,
      key,
      device: device.number,
      facts: { account, action, amount },
      headers,
      body,
    })
    unsettled.add(attempt)
    return attempt
  }

  async function send(attempt: Attempt): Promise<boolean> {
    const query = attempt.key === 'public' ? `?key=${keys.public}` : ''
    const { headers, body } = attempt
    const outcome = await call(agent, {
      method: 'POST',
      url: `${random.pick(urls)}/v1/identify${query}`,
      headers,
      body,
    })
    ledger.record(attempt, outcome)
    if (outcome.status !== 200) return false
    const device = byNumber.get(attempt.device)
    if (device !== undefined) device.token = (JSON.parse(outcome.text) as { storageToken: string }).storageToken
    return true
  }

  function finish(attempt: Attempt): void {
    if (attempt.answer === null) return
    unsettled.delete(attempt)
    latest.push(attempt)
    // Only what may be sent again needs its bytes.
    if (latest.length > LATEST_MAX) (latest.shift() as Attempt).body = ''
  }

  async function visit(): Promise<void> {
    const device = devices.length === 0 || random.chance(newShare) ? newDevice() : random.pick(devices)
    const attempt = attemptFor(device, random.chance(TOKEN_SHARE))
    const twice = attempt.nonce !== null && random.chance(REPEAT_SHARE)
    const together = twice && random.chance(0.5)
    const sent = together ? await Promise.all([send(attempt), send(attempt)]) : [await send(attempt)]
    if (twice && sent.every(Boolean)) sent.push(await send(attempt))
    finish(attempt)
    if (sent.includes(false)) await pause(PAUSE_MS)
  }

  async function work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && ledger.violation() === null) {
      await visit()
      if (thinkMs > 0) await pause(random.int(2 * thinkMs))
    }
  }

  /** What a client does that was told 202: asks for the event. */
  async function look(attempt: Attempt, requestId: string): Promise<void> {
    const headers = { authorization: `Bearer ${keys.secret}` }
    const outcome = await call(agent, { method: 'GET', url: `${url}/v1/events/${requestId}`, headers })
    if (outcome.status === 200 && 'text' in outcome) ledger.found(attempt, JSON.parse(outcome.text) as Answer)
    else if (outcome.status === 404 && attempt.nonce === null) {
      ledger.violate(requestId, 'was answered 202 and is no event', attempt.history)
    } else if (outcome.status === 404) {
      // It may have been the repeat of a nonce, and whoever knew that is gone: the nonce leads to the event.
      attempt.pendingId = null
    }
  }

  /** False when there is nothing more to be learnt. */
  async function ask(attempt: Attempt): Promise<boolean> {
    // What was answered before is asked for until it is answered again: the ledger compares.
    if (attempt.answer !== null) return !(await send(attempt)) && ledger.violation() === null
    if (attempt.pendingId !== null) await look(attempt, attempt.pendingId)
    else if (attempt.nonce === null) return false
    else await send(attempt)
    return attempt.answer === null && ledger.violation() === null
  }

  return {
    agent,
    async run(signal) {
      await Promise.all(Array.from({ length: connections }, () => work(signal)))
    },

    async settle(msMax) {
      const deadline = performance.now() + msMax
      const repeats = latest.splice(0).filter(({ nonce }) => nonce !== null)
      const open = [...unsettled, ...repeats]
      unsettled.clear()
      async function askNext(): Promise<void> {
        for (let attempt = open.pop(); attempt !== undefined; attempt = open.pop()) {
          for (let pauseMs = PAUSE_MS; await ask(attempt); pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
            if (performance.now() > deadline) ledger.violate(ledger.nameOf(attempt), 'no answer', attempt.history)
            await pause(pauseMs)
          }
          attempt.body = ''
        }
      }
      await Promise.all(Array.from({ length: connections }, askNext))
    },

    async probe() {
      const attempt = attemptFor(newDevice(), false)
      await send(attempt)
      finish(attempt)
      return attempt
    },
    close: () => agent.destroy(),
  }
}
