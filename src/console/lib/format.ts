// Numbers, times and names as people read them.

const number = new Intl.NumberFormat('en')
const time = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const utcTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

export const wholeText = (value: number): string => number.format(value)
/** A share of one, with as many digits as it needs to be told from 0 and from 1. */
export function percent(share: number): string {
  const value = share * 100
  if (value === 0 || value === 100) return `${value} %`
  if (value < 0.01) return '< 0.01 %'
  return `${value.toFixed(value < 1 || value > 99 ? 2 : 1)} %`
}
/** In the zone of whoever looks, as days are. */
export const momentText = (iso: string): string => time.format(new Date(iso))
/** Of the buckets of analytics, which begin by UTC. */
export const utcText = (ms: number): string => utcTime.format(new Date(ms))
export const dayText = (iso: string): string => day.format(new Date(iso))

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]
/** `3 minutes ago` */
export function ago(iso: string, nowMs = Date.now()): string {
  const seconds = Math.round((new Date(iso).getTime() - nowMs) / 1_000)
  const [unit, length] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? (['second', 1] as const)
  return relative.format(Math.trunc(seconds / length), unit)
}

/** `2 h 5 min` of seconds. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.round(hours / 24)} days`
}

const BYTES = ['B', 'KB', 'MB', 'GB', 'TB'] as const
export function bytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log10(value) / 3))
  const scaled = value / 1_000 ** power
  return `${power === 0 ? scaled : scaled.toFixed(1)} ${BYTES[power]}`
}

/** The end of an id, which is what tells it from others. */
export const short = (id: string): string =>
  id.length <= 14 ? id : `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-6)}`

export const SIGNAL_WORDS: Readonly<Record<string, string>> = {
  bot: 'Bot',
  vpn: 'VPN',
  incognito: 'Private mode',
  tampered: 'Tampered',
  emulator: 'Emulator',
  proxy: 'Proxy',
  tor: 'Tor',
  rootedDevice: 'Rooted device',
  clonedApp: 'Cloned app',
}

export const signalWordOf = (name: string): string => SIGNAL_WORDS[name] ?? name
