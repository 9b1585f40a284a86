// What a team would otherwise assemble, small and fair: node:http on every core, json-rules-engine, Redis that flushes before it answers,
// ClickHouse in batches. It takes the same body and rules, knows visitors by token or by a hash of their components, counts visits of an
// address, and answers when the event is on disk. It has no likeness, no signals, no scores but one, no webhooks and no second attempt.
// Usage: node server.js PORT REDIS_URL FOLDER RULES

import cluster from 'node:cluster'
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { availableParallelism } from 'node:os'
import { Redis } from 'ioredis'
import { openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import type { ConditionGroup } from '../../src/domain/rule.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { makeRule } from '../population.ts'
import { jsonRulesEngine } from '../rule-engines.ts'

const [port = '0', redisUrl = '', folder = '', ruleCount = '50'] = process.argv.slice(2)
const STREAM = 'events'
const COLUMNS = ['request_id', 'visitor_id', 'at', 'verdict', 'body']
const TABLE = `CREATE TABLE IF NOT EXISTS visits
  (request_id String, visitor_id String, at DateTime64(3, 'UTC'), verdict LowCardinality(String), body String)
  ENGINE = MergeTree ORDER BY at SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1`
const FLUSH_MS = 1_000
const ROWS_MAX = 10_000
const NONCE_SECONDS = 120
const DAY_SECONDS = 86_400

/** Moves what the workers have stored to ClickHouse; what was inserted and not yet trimmed is inserted again under the same token. */
async function sink(): Promise<void> {
  const redis = new Redis(redisUrl)
  const silent = { info: () => undefined, warn: () => undefined }
  const place = { dataDir: folder, database: 'peers', clock: systemClock, log: silent }
  const clickhouse = await openEmbeddedClickHouse(place)
  await clickhouse.command('CREATE DATABASE IF NOT EXISTS peers')
  await clickhouse.command(TABLE)
  for (;;) {
    const entries = await redis.xrange(STREAM, '-', '+', 'COUNT', ROWS_MAX)
    const [newest] = entries.at(-1) ?? []
    if (newest !== undefined) {
      const rows = Buffer.from(`${entries.map(([, [, row]]) => row).join('\n')}\n`)
      await clickhouse.insert('visits', COLUMNS, rows, { token: newest })
      await redis.xdel(STREAM, ...entries.map(([id]) => id))
    }
    if (entries.length < ROWS_MAX) await systemClock.sleep(FLUSH_MS)
  }
}

interface Visit {
  readonly nonce?: string
  readonly storageToken?: string | null
  readonly tag?: { readonly action?: string }
  readonly components: Readonly<Record<string, { readonly value?: unknown }>>
}

function serve(): void {
  const redis = new Redis(redisUrl, { enableAutoPipelining: true })
  const rules = Array.from({ length: Number(ruleCount) }, (_, i) => makeRule(i))
  const engine = jsonRulesEngine(rules.map(({ conditions }) => conditions as unknown as ConditionGroup))

  async function visitorOf(visit: Visit): Promise<readonly [visitorId: string, key: string]> {
    if (visit.storageToken) {
      const known = await redis.get(`token:${visit.storageToken}`)
      if (known !== null) return [known, `token:${visit.storageToken}`]
    }
    const values = Object.entries(visit.components).map(([name, component]) => [name, component.value])
    const key = `device:${createHash('sha256').update(JSON.stringify(values)).digest('hex')}`
    return [(await redis.get(key)) ?? randomUUID(), key]
  }

  async function identify(text: string, request: IncomingMessage): Promise<object> {
    const visit = JSON.parse(text) as Visit
    if (typeof visit.components !== 'object' || visit.components === null) throw new Error('no components')
    const ip = String(request.headers['x-forwarded-for'] ?? request.socket.remoteAddress)
    const [[visitorId, key], visits] = await Promise.all([visitorOf(visit), redis.incr(`ip:${ip}`)])
    const facts = {
      'scores.suspect': Math.min(100, visits * 10),
      'device.platform': /Windows/.test(request.headers['user-agent'] ?? '') ? 'Windows' : 'Linux',
      'tag.action': visit.tag?.action ?? null,
    }
    const [first] = await engine.run(facts)
    const verdict = first === undefined ? 'allow' : (rules[first]?.action.verdict ?? 'allow')
    const requestId = randomUUID()
    const row = JSON.stringify([requestId, visitorId, new Date().toISOString().slice(0, -1), verdict, text])
    const stored = redis
      .multi()
      .set(key, visitorId)
      .set(`token:${visitorId}`, visitorId)
      .expire(`ip:${ip}`, DAY_SECONDS)
      .xadd(STREAM, '*', 'row', row)
    if (visit.nonce !== undefined) stored.set(`nonce:${visit.nonce}`, requestId, 'EX', NONCE_SECONDS)
    // Redis flushes before it answers.
    await stored.exec()
    return {
      requestId,
      visitorId,
      verdict,
      storageToken: visitorId,
      matchedRule: rules[first ?? -1]?.name ?? null,
      facts,
    }
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      identify(Buffer.concat(chunks).toString('utf8'), request).then(
        (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
        () => response.writeHead(400).end(),
      )
    })
  }
  createServer(answer).listen(Number(port), '127.0.0.1')
}

if (cluster.isPrimary) {
  const threads = availableParallelism()
  let listening = 0
  cluster.on('listening', () => {
    listening += 1
    if (listening === threads) process.send?.('listening')
  })
  for (let i = 0; i < threads; i++) cluster.fork()
  await sink()
} else serve()
