// Clients of the simulation: devices that come again with and without their token, nonces used twice, and what each client
// was told.

import type { Env } from '../../src/domain/event.ts'
import type { KeyKind } from '../../src/domain/workspace.ts'
import { must } from '../../src/lib/must.ts'
import { bareLinux, firefox, iphone, type Request, windowsPc } from '../helpers/recognition.ts'
import type { Rng } from '../helpers/rng.ts'
import { BAD_ROW } from './model-clickhouse.ts'
import type { ModelProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import { THREAD_KILLER } from './threads.ts'

export interface Ask {
  readonly number: number
  readonly device: Device
  readonly ip: string
  readonly env: Env
  readonly keyKind: KeyKind
  readonly nonce: string | null
  readonly body: Uint8Array
}

export interface Answered {
  readonly ask: Ask
  readonly status: number
  readonly body: string
  /** Of a 200 or 202. */
  readonly requestId: string | null
  readonly replayed: boolean
  /** Virtual milliseconds. */
  readonly at: number
  readonly by: ModelProcess
}

/** Whom a 200 told its client of. */
export const visitorIdOf = ({ body }: Pick<Answered, 'body'>): string =>
  (JSON.parse(body) as { visitorId: string }).visitorId

interface Device {
  readonly headers: Readonly<Record<string, string>>
  readonly ip: string
  /** The members of the body that tell of the device, as JSON without braces. */
  readonly page: string
  token: string | null
}

const cores = (count: number): Request =>
  windowsPc({ hardwareConcurrency: count, canvas: { winding: true, geometry: `${count}`, text: 'a', stable: true } })
const TEMPLATES = [cores(4), cores(8), cores(16), bareLinux(), bareLinux({ deviceMemory: 4 }), firefox(), iphone()]
/** What routing and matching look at; the rest only costs time here. */
const COMPONENTS = [
  'userAgent',
  'platform',
  'timezone',
  'hardwareConcurrency',
  'deviceMemory',
  'screenResolution',
  'canvas',
  'audio',
  'webGlBasics',
  'languages',
]
const PAGES = TEMPLATES.map(({ body, headers, userAgent }) => ({
  headers: { 'user-agent': userAgent, accept: headers.accept ?? '' },
  page: JSON.stringify({
    components: Object.fromEntries(COMPONENTS.map((name) => [name, { value: body.components?.[name]?.value ?? null }])),
  }).slice(1, -1),
}))
const MOVED = 0.5
const ATTEMPTS_MAX = 4
const ANSWER_MS_MAX = 8_000

export interface Clients {
  /** Plans `count` requests over the next `ms` milliseconds. */
  plan(count: number, ms: number): void
  /** Requests whose client is not done yet. */
  open(): number
}

export interface ClientsNeeds {
  readonly scheduler: Scheduler
  readonly ready: () => readonly ModelProcess[]
  readonly onAnswer: (answered: Answered) => void
  /** Chances of the odd ones. */
  readonly killers: number
  readonly badRows: number
  /** Of its own, like that of the erasers: how often a device is somewhere else, where its looks have other keys; null: never. */
  readonly moving: Rng | null
}

export function createClients({ scheduler, ready, onAnswer, killers, badRows, moving }: ClientsNeeds): Clients {
  const { random } = scheduler
  const devices: Device[] = Array.from({ length: 2 + random.int(4) }, () => {
    const { headers, page } = random.pick(PAGES)
    return { headers, page, ip: `198.51.100.${1 + random.int(3)}`, token: null }
  })
  const sent: Ask[] = []
  let open = 0

  function compose(number: number, like: Ask | null): Ask {
    const device = random.pick(devices)
    const nonce = like?.nonce ?? (random.chance(0.5) ? `nonce_${number}_0123456789` : null)
    const odd = random.float()
    const tag = odd < killers ? THREAD_KILLER : odd < killers + badRows ? BAD_ROW : 'ordinary'
    const members = [
      device.page,
      `"tag":{"number":${number},"kind":"${tag}"}`,
      ...(nonce === null ? [] : [`"nonce":"${nonce}"`]),
      ...(device.token !== null && random.chance(0.6) ? [`"storageToken":"${device.token}"`] : []),
      ...(random.chance(0.3) ? [`"linkedId":"account_${random.int(3)}"`] : []),
    ]
    const env = like?.env ?? (random.chance(0.85) ? 'live' : 'test')
    const keyKind = random.chance(0.7) ? 'public' : 'secret'
    const ip = moving?.chance(MOVED) ? `192.0.2.${moving.int(100)}` : device.ip
    return { number, device, ip, env, keyKind, nonce, body: Buffer.from(`{${members.join()}}`) }
  }

  /** Mostly something new; otherwise the nonce of an earlier one, with its body or with another. */
  function draw(number: number): Ask {
    const earlier = sent.filter(({ nonce }) => nonce !== null)
    const draw = random.float()
    if (earlier.length > 0 && draw < 0.15) return random.pick(earlier)
    if (earlier.length > 0 && draw < 0.22) return compose(number, random.pick(earlier))
    return compose(number, null)
  }

  function attempt(ask: Ask, attempts: number): void {
    const again = (ms: number) => {
      if (attempts < ATTEMPTS_MAX) scheduler.after(ms, () => attempt(ask, attempts + 1))
      else open--
    }
    const processes = ready()
    if (processes.length === 0) {
      again(400)
      return
    }
    const by = random.pick(processes)
    let over = false
    const timer = scheduler.after(ANSWER_MS_MAX, () => {
      if (over) return
      over = true
      again(random.float() * 200)
    })
    const { body, env, keyKind, ip } = ask
    const { headers } = ask.device
    by.host.step(random.float() * 2, () => {
      by.identify({ body, env, keyKind, headers, ip }, (response) => {
        if (over) return
        over = true
        timer.run = null
        const text = String(response.body ?? '')
        scheduler.note('http', `#${ask.number} ${response.status} from ${by.host.name}`)
        const told = response.status < 300 ? (JSON.parse(text) as { requestId: string; storageToken?: string }) : null
        if (told?.storageToken !== undefined) ask.device.token = told.storageToken
        onAnswer({
          ask,
          status: response.status,
          body: text,
          requestId: told?.requestId ?? null,
          replayed: (response.headers ?? []).some(([name]) => name === 'Idempotent-Replayed'),
          at: scheduler.now(),
          by,
        })
        if (response.status >= 500) again(random.float() * 500)
        else open--
      })
    })
  }

  return {
    plan(count, ms) {
      const times = Array.from({ length: count }, () => random.float() * ms).sort((a, b) => a - b)
      open += count
      times.forEach((at, number) => {
        scheduler.after(at, () => {
          const ask = draw(number)
          sent.push(must(ask))
          attempt(ask, 1)
        })
      })
    },
    open: () => open,
  }
}
