// Who comes when in the test environment that `fingerpost seed --demo` fills: customers who return, private windows, VPNs, bots, accounts
// that share a device and an account that is tried from many. Addresses are those kept for documentation (RFC 5737, RFC 3849).

import type { IdentifyBody } from '../domain/identify.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import { DEMO_HOMES, type DemoDevice, type DemoHome, makeDemoBot, makeDemoDevice, pageOf } from './demo-devices.ts'
import { openSeedRandom, type SeedRandom } from './seed-random.ts'

export interface DemoVisit {
  readonly atMs: number
  /** Number of the browser: its visits follow one another. */
  readonly browser: number
  /** Whether the browser sends what it was given to keep. */
  readonly keeps: boolean
  readonly kind: 'customer' | 'guest' | 'abuser' | 'bot' | 'thief'
  readonly body: IdentifyBody
}

const DAYS = 7
const CUSTOMERS = 140
const GUESTS = 80
const ABUSERS = 5
const BOTS = 4
const THIEVES = 8
/** The account that thieves try. */
const VICTIM = 7
const MAILS = ['mail.example', 'post.example', 'inbox.example']
const SHOP = 'https://shop.example'

interface Guest {
  readonly browser: number
  readonly device: DemoDevice
  readonly home: DemoHome
  readonly ip: string
}

const account = (number: number) => ({
  linkedId: `user_${number}`,
  email: `user_${number}@${MAILS[number % MAILS.length]}`,
})

/** The same seed and end make the same visits, in the order of time; none is later than `untilMs`. */
export function demoVisits(seed: string, untilMs: number): DemoVisit[] {
  const random = openSeedRandom(`demo ${seed}`)
  const visits: DemoVisit[] = []
  let browsers = 0

  function newGuest(made?: DemoDevice): Guest {
    const home = random.pick(DEMO_HOMES)
    return {
      browser: browsers++,
      device: made ?? makeDemoDevice(random, home),
      home,
      ip: homeAddress(random, browsers),
    }
  }

  /** By day, as people are awake. */
  const someTime = () => untilMs - random.int(DAYS) * DAY_MS - Math.floor(random.float() ** 1.6 * 16 * HOUR_MS)

  function add(
    guest: Guest,
    kind: DemoVisit['kind'],
    atMs: number,
    more: Partial<IdentifyBody>,
    isPrivate = false,
  ): void {
    const { browser, device, home, ip } = guest
    const { mock, ...rest } = more
    const said = device.values.incognito as { readonly browserName: string } | undefined
    const window = isPrivate && said !== undefined ? { incognito: { ...said, isPrivate } } : {}
    visits.push({
      ...{ atMs, browser, kind, keeps: !isPrivate && kind !== 'bot' && kind !== 'abuser' },
      body: {
        ...pageOf(device, window),
        ...{ ip, automation: { webdriver: kind === 'bot' } },
        mock: { at: new Date(atMs).toISOString(), country: home.country, ...mock },
        ...rest,
      },
    })
  }

  for (let number = 1; number <= CUSTOMERS; number++) {
    const guest = newGuest()
    const count = 2 + Math.floor(random.exponential(5))
    const isPrivatePerson = random.chance(0.1)
    const hasVpn = random.chance(0.08)
    for (let visit = 0; visit < Math.min(count, 25); visit++) {
      const isAway = hasVpn && random.chance(0.6)
      const way = isAway ? { ip: exitAddress(random), mock: { country: 'NL', signals: { vpn: true } } } : {}
      add(guest, 'customer', someTime(), { ...account(number), ...pageVisit(random), ...way }, isPrivatePerson)
    }
  }
  for (let number = 0; number < GUESTS; number++) {
    const { url, referrer } = pageVisit(random)
    add(newGuest(), 'guest', someTime(), { url, referrer }, random.chance(0.15))
  }
  for (let number = 0; number < ABUSERS; number++) {
    const guest = newGuest()
    const startMs = someTime()
    const accounts = 5 + random.int(5)
    for (let signup = 0; signup < accounts; signup++) {
      const atMs = Math.min(untilMs, startMs + signup * 11 * MINUTE_MS)
      const way = random.chance(0.4) ? { ip: exitAddress(random), mock: { signals: { vpn: true } } } : {}
      const tag = { action: 'signup', plan: 'free' }
      add(guest, 'abuser', atMs, { ...account(9_000 + number * 16 + signup), url: `${SHOP}/signup`, tag, ...way })
    }
  }
  for (let number = 0; number < BOTS; number++) {
    const guest = newGuest(makeDemoBot(random))
    const startMs = someTime()
    const pages = 20 + random.int(20)
    for (let page = 0; page < pages; page++) {
      const atMs = Math.min(untilMs, startMs + page * 40_000 + random.int(20_000))
      add({ ...guest, ip: `198.51.100.${200 + number}` }, 'bot', atMs, { url: `${SHOP}/product/${1_000 + page * 7}` })
    }
  }
  const theftMs = untilMs - 5 * HOUR_MS
  for (let number = 0; number < THIEVES; number++) {
    const tag = { action: 'login', failed: true }
    const way = number % 2 === 0 ? { mock: { country: 'RO', signals: { tor: true } } } : { mock: { country: 'VN' } }
    const more = { ...account(VICTIM), url: `${SHOP}/login`, tag, ip: `192.0.2.${50 + number}`, ...way }
    add(newGuest(), 'thief', theftMs + number * 4 * MINUTE_MS, more)
  }
  return visits.sort((a, b) => a.atMs - b.atMs)
}

function homeAddress(random: SeedRandom, number: number): string {
  return random.chance(0.25) ? `2001:db8:${number.toString(16)}::1` : `203.0.113.${1 + (number % 250)}`
}

const exitAddress = (random: SeedRandom): string => `198.51.100.${1 + random.int(20)}`

interface PageVisit {
  readonly url: string
  readonly referrer: string
  readonly tag: Record<string, unknown>
}

function pageVisit(random: SeedRandom): PageVisit {
  const drawn = random.float()
  const referrer = random.chance(0.5) ? 'https://search.example/' : `${SHOP}/`
  if (drawn < 0.5) return { referrer, url: `${SHOP}/product/${1_000 + random.int(60) * 7}`, tag: { action: 'view' } }
  if (drawn < 0.8) return { referrer, url: `${SHOP}/login`, tag: { action: 'login' } }
  const amount = Math.round(500 + random.exponential(9_000)) / 100
  return { referrer, url: `${SHOP}/checkout`, tag: { action: 'checkout', amount } }
}
