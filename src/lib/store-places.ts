// Where the servers are that a cluster stands on, as the settings have it, and why that cannot be: what is tried again for ever must be
// possible. Addresses are not repeated, since passwords may stand in them.

import { readFileSync } from 'node:fs'
import { authoritiesProblem } from './authorities.ts'
import { reasonOf } from './plain.ts'

type Listed = 'nats.servers' | 'nats.monitorUrls' | 'redis.clusterNodes'
type StorePlaces = Readonly<
  Record<Listed, readonly string[]> &
    Record<'redis.url' | 'clickhouse.url' | 'nats.credsFile' | 'nats.caFile' | 'redis.caFile', string>
>

interface Address {
  /** The first one may be left out where `isBare`. */
  readonly schemes: readonly string[]
  readonly isBare: boolean
  readonly port: number
}

const ADDRESSES = {
  'nats.servers': { schemes: ['nats', 'tls'], isBare: true, port: 4_222 },
  'nats.monitorUrls': { schemes: ['http', 'https'], isBare: false, port: 8_222 },
  'redis.url': { schemes: ['redis', 'rediss'], isBare: false, port: 6_379 },
  'redis.clusterNodes': { schemes: ['redis', 'rediss'], isBare: true, port: 6_379 },
  'clickhouse.url': { schemes: ['http', 'https'], isBare: false, port: 8_123 },
} as const satisfies Readonly<Record<string, Address>>

/** Why these settings cannot be; null: they can. */
export function storesProblem(places: StorePlaces): string | null {
  for (const name of Object.keys(ADDRESSES) as (keyof typeof ADDRESSES)[]) {
    const form: Address = ADDRESSES[name]
    const addresses = [places[name]].flat()
    const isMissing = name === 'nats.servers' && addresses.length === 0
    if (!isMissing && addresses.every((text) => isAddress(text, form))) continue
    return `${name} takes ${form.schemes.map((scheme) => `${scheme}://host:${form.port}`).join(' or ')}`
  }
  for (const name of ['nats.caFile', 'redis.caFile'] as const) {
    const problem = places[name] === '' ? null : authoritiesProblem(places[name])
    if (problem !== null) return `${name}: ${problem}`
  }
  try {
    if (places['nats.credsFile'] !== '') readFileSync(places['nats.credsFile'])
    return null
  } catch (error) {
    return `nats.credsFile: ${places['nats.credsFile']} cannot be read: ${reasonOf(error)}`
  }
}

function isAddress(text: string, { schemes, isBare }: Address): boolean {
  const whole = isBare && !text.includes('://') ? `${schemes[0]}://${text}` : text
  if (!URL.canParse(whole)) return false
  const { protocol, hostname } = new URL(whole)
  return hostname !== '' && schemes.includes(protocol.slice(0, -1))
}
