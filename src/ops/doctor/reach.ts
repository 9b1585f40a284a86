// What the doctor finds by asking: the server on this machine, and in a cluster the servers it needs.

import { get as getPlain } from 'node:http'
import { get as getSecure } from 'node:https'
import type { Advice } from '../../api/health.ts'
import { openClickHouse } from '../../clickhouse/open.ts'
import type { Config } from '../../config.ts'
import type { Clock } from '../../lib/clock.ts'
import { reasonOf } from '../../lib/plain.ts'
import { type Finding, findingsOf } from './finding.ts'

const ANSWER_MS_MAX = 5_000
const BODY_CHARS_MAX = 1_000_000
const NAME = 'fingerpost doctor'
const { ok, note, bad } = findingsOf('reachable')

export async function findReachable(config: Config, clock: Clock): Promise<Finding[]> {
  const asked = config.isCluster ? [askNats(config), askRedis(config, clock), askClickHouse(config, clock)] : []
  const [server, ...others] = await Promise.all([askServer(config), ...asked])
  return [...server, ...others]
}

/** What a server of these settings would say of itself. */
async function askServer(config: Config): Promise<Finding[]> {
  const isInside = config['http.adminPort'] !== 0
  const [host, port] = isInside
    ? [config['http.adminHost'], config['http.adminPort']]
    : [config['http.host'], config['http.port']]
  const near = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const scheme = config['tls.certFile'] === '' ? 'http' : 'https'
  const url = `${scheme}://${near.includes(':') ? `[${near}]` : near}:${port}/readyz`
  try {
    const { status, body } = await readUrl(url)
    const {
      failing = [],
      checks = {},
      advice = [],
    } = JSON.parse(body) as {
      failing?: readonly string[]
      checks?: Readonly<Record<string, string | null>>
      advice?: readonly Advice[]
    }
    // What data about addresses there is, the doctor sees for itself.
    const proxy = advice.find(({ code }) => code === 'untrusted_proxy')
    const notes = proxy === undefined ? [] : [note('proxy', proxy.says, proxy.mend)]
    const why = failing.map((name) => `${name}: ${checks[name]}`).join('; ')
    const reason = why === '' ? '' : `: ${why}`
    return [status === 200 ? ok('server', `ready, ${url}`) : bad('server', `not ready, ${url}${reason}`), ...notes]
  } catch (error) {
    return [note('server', `none answers at ${url}: ${reasonOf(error)}`)]
  }
}

/** Its certificate names the public address, not this machine: only the state of health is read. */
function readUrl(url: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const options = { timeout: ANSWER_MS_MAX, rejectUnauthorized: false, agent: false } as const
    const request = (url.startsWith('https:') ? getSecure : getPlain)(url, options, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
        if (body.length > BODY_CHARS_MAX) request.destroy(new Error('its answer is too long'))
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${ANSWER_MS_MAX} ms`)))
    request.on('error', reject)
  })
}

async function askNats(config: Config): Promise<Finding> {
  const servers = config['nats.servers']
  try {
    const { connectNats } = await import('../../lib/nats.ts')
    const connection = await connectNats({
      servers,
      user: config['nats.user'],
      password: config['nats.password'],
      token: config['nats.token'],
      credsFile: config['nats.credsFile'],
      caFile: config['nats.caFile'],
      name: NAME,
    })
    const version = connection.info?.version ?? 'unknown'
    const server = connection.getServer()
    await connection.close()
    return ok('NATS', `${server}, version ${version}`)
  } catch (error) {
    return bad('NATS', `${servers.join(', ')}: ${reasonOf(error)}`)
  }
}

async function askRedis(config: Config, clock: Clock): Promise<Finding> {
  const { 'redis.url': url, 'redis.clusterNodes': clusterNodes, 'redis.caFile': caFile } = config
  const where = clusterNodes.length > 0 ? clusterNodes.join(', ') : withoutPassword(url)
  try {
    const { connectRedis } = await import('../../lib/redis.ts')
    const client = await connectRedis({ url, clusterNodes, caFile, name: NAME, clock })
    try {
      await client.ping()
    } finally {
      client.disconnect()
    }
    return ok('Redis', where)
  } catch (error) {
    return bad('Redis', `${where}: ${reasonOf(error)}`)
  }
}

async function askClickHouse(config: Config, clock: Clock): Promise<Finding> {
  const url = config['clickhouse.url']
  const where = withoutPassword(url)
  try {
    const clickhouse = await openClickHouse(
      {
        mode: 'http',
        url,
        username: config['clickhouse.user'],
        password: config['clickhouse.password'],
        database: 'system',
      },
      { clock, log: { info() {}, warn() {} } },
    )
    try {
      const [row] = await clickhouse.query<{ version: string }>('SELECT version() AS version', {})
      return ok('ClickHouse', `${where}, version ${row?.version ?? 'unknown'}`)
    } finally {
      await clickhouse.close()
    }
  } catch (error) {
    return bad('ClickHouse', `${where}: ${reasonOf(error)}`)
  }
}

function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return 'an address that is none'
  const parsed = new URL(url)
  parsed.username = ''
  parsed.password = ''
  return parsed.href
}
