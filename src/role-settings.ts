// What of the settings each role of a process is started with.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OidcSettings } from './api/console/provider.ts'
import { BadSetting, type Config } from './config.ts'
import type { Seed } from './control/bootstrap.ts'
import type { MailSettings } from './dispatcher/mail.ts'
import { inCidrs, lineOf } from './domain/ip.ts'
import type { Role } from './domain/person.ts'
import type { Workspace, WorkspaceSettings } from './domain/workspace.ts'
import { isoTime } from './events/present.ts'
import { driverOf } from './http/server.ts'
import { tlsProblems } from './http/tls.ts'
import { sourcePlaces } from './ipintel/sources.ts'
import { authoritiesProblem } from './lib/authorities.ts'
import { parseDatetime } from './lib/datetime.ts'
import { descriptorsMax } from './lib/descriptors.ts'

/** Where data about addresses is, and how it is treated. */
export const ipSettings = (config: Config) => ({
  dir: config['ip.dir'] || join(config['data.dir'], 'ip'),
  places: sourcePlaces(config),
  pollMs: config['ip.pollMs'],
  bytesMax: config['ip.downloadBytesMax'],
  relayIsVpn: config['ip.relayIsVpn'],
})

/** Of everything that listens. Throws BadSetting for a certificate or a key that cannot be served with. */
export function httpSettings(config: Config) {
  const { 'tls.certFile': certFile, 'tls.keyFile': keyFile, trustedProxies } = config
  const [wrong] = certFile === '' ? [] : tlsProblems({ certFile, keyFile })
  if (wrong !== undefined) throw new BadSetting(`tls.${wrong.file}: ${wrong.says}`)
  const max = config['http.perIpConnectionsMax'] || Math.min(1_000, Math.max(1, Math.floor(descriptorsMax() / 4)))
  return {
    ...(certFile === '' ? {} : { tls: { certFile, keyFile } }),
    driver: driverOf(config['http.driver']),
    inFlightMax: config['http.inFlightMax'],
    // Whoever has an IPv6 address has the other ones of its /64.
    perHost: { max, hostOf: (address: string) => (inCidrs(address, trustedProxies) ? null : lineOf(address)) },
  }
}

export const masterKeyFile = (config: Config): string =>
  config['webhooks.masterKeyFile'] || join(config['data.dir'], 'master.key')

const schemeOf = (config: Config): string => (config['tls.certFile'] === '' ? 'http' : 'https')
const hostOf = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** Where it listens; `port` is the one it got. */
export const listensOn = (config: Config, port: number): string =>
  `${schemeOf(config)}://${hostOf(config['http.host'])}:${port}`

/** Under which SDKs and back ends reach it. */
export const serviceUrl = (config: Config, port: number): string => config['http.publicUrl'] || listensOn(config, port)

/** Under which people reach the console. */
export function consoleUrl(config: Config, port: number): string {
  const { 'http.adminHost': host, 'http.adminPort': adminPort } = config
  if (config['console.url'] !== '') return config['console.url']
  return adminPort === 0 ? serviceUrl(config, port) : `${schemeOf(config)}://${hostOf(host)}:${adminPort}`
}

/** null: people sign in with passwords only. Throws BadSetting for a file without a secret. */
function oidcSettings(config: Config): OidcSettings | null {
  const { 'console.oidcIssuer': issuer, 'console.oidcClientId': clientId, 'console.oidcLabel': label } = config
  if (issuer === '') return null
  const file = config['console.oidcClientSecretFile']
  const clientSecret = file === '' ? config['console.oidcClientSecret'] : readSecretFile(file)
  const { 'console.oidcDomains': domains, 'console.oidcRole': role } = config
  return { issuer, clientId, clientSecret, label, domains, role: role as Role }
}

function readSecretFile(file: string): string {
  let secret: string
  try {
    secret = readFileSync(file, 'utf8').split(/\r?\n/, 1)[0] ?? ''
  } catch (error) {
    throw new BadSetting(`console.oidcClientSecretFile: ${(error as Error).message}`)
  }
  if (secret === '') throw new BadSetting(`console.oidcClientSecretFile: ${file} begins with an empty line`)
  return secret
}

/** Where the console is, what it tells of where the service is, and with whom people may sign in. */
export const consolePlace = (config: Config, port: () => number) => ({
  address: () => consoleUrl(config, port()),
  serviceUrl: () => serviceUrl(config, port()),
  isSecure: consoleUrl(config, 0).startsWith('https:'),
  isApart: config['http.adminPort'] !== 0,
  oidc: oidcSettings(config),
})

/** How receivers of webhooks are called, and what is told of that. Throws BadSetting for a file without authorities. */
export function outgoingSettings(config: Config) {
  const { 'webhooks.extraCaFile': extraCaFile, allowPrivate } = config
  const problem = extraCaFile === '' ? null : authoritiesProblem(extraCaFile)
  if (problem !== null) throw new BadSetting(`webhooks.extraCaFile: ${problem}`)
  const mail = {
    host: config['smtp.host'],
    port: config['smtp.port'],
    tls: config['smtp.tls'] as MailSettings['tls'],
    user: config['smtp.user'],
    password: config['smtp.password'],
    from: config['smtp.from'],
    to: config['smtp.to'],
  }
  return { extraCaFile, allowPrivate, mail }
}

/** Addresses from which webhooks come, as `/.well-known/webhook-ips` tells them. */
export function webhookIps(config: Config) {
  const { 'webhooks.ipv4': ipv4, 'webhooks.ipv6': ipv6, 'webhooks.ipsUpdatedAt': text } = config
  const updatedAt = text === '' ? null : parseDatetime(text)
  if (text !== '' && updatedAt === null) throw new BadSetting(`webhooks.ipsUpdatedAt: ${text} is no RFC 3339 time`)
  return { ipv4, ipv6, updatedAt: updatedAt === null ? null : isoTime(updatedAt) }
}

/** Keys of the first start. Several processes of a cluster start at once, and what one prints is not seen: there, only given ones. */
export function keySeeds(config: Config): Seed[] {
  const seed = (kind: Seed['kind'], env: Seed['env'], text: string): Seed => ({
    kind,
    env,
    ...(text === '' ? {} : { text }),
  })
  const seeds = [
    seed('public', 'live', config['keys.public']),
    seed('secret', 'live', config['keys.secret']),
    seed('public', 'test', config['keys.testPublic']),
    seed('secret', 'test', config['keys.testSecret']),
  ]
  return config.isCluster ? seeds.filter(({ text }) => text !== undefined) : seeds
}

/** For how long a workspace with these settings keeps its events, days. */
export const eventsDaysOf = (config: Config, settings: WorkspaceSettings | undefined): number =>
  Math.min(config['retention.eventsDays'], settings?.retention?.eventsDays ?? config['retention.eventsDays'])

/** For how long it keeps visitors nobody sees, days. */
const visitorsDaysOf = (config: Config, settings: WorkspaceSettings | undefined): number =>
  config['retention.visitorsDays'] || eventsDaysOf(config, settings)

export const engineSettings = (config: Config) => ({
  visitorsMax: config['engine.visitorsMax'],
  healsPerSecondMax: config['engine.healsPerSecondMax'],
  entriesMax: config['lists.entriesMax'],
  recentMax: config['recent.eventsMax'],
})

export const jobSettings = (config: Config) => ({
  keepMs: config['log.keepSeconds'] * 1_000,
  alertsEveryMs: config['alerts.everySeconds'] * 1_000,
  visitorsDays: (workspace: Workspace | undefined) => visitorsDaysOf(config, workspace?.settings),
  purge: {
    everyMs: config['purge.everySeconds'] * 1_000,
    cluster: config.isCluster ? config['clickhouse.cluster'] : '',
    retention: { eventsDays: config['retention.eventsDays'], fullIpDays: config['retention.fullIpDays'] },
  },
})
