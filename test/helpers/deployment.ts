// A deployment in a folder for tests of commands: its ports opened as a command opens them, and visits whose answers tell what
// must be there afterwards.

import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLifetime } from '../../src/lib/lifetime.ts'
import { openLogger } from '../../src/lib/logger.ts'
import { openProgress, type Progress } from '../../src/ops/progress.ts'
import { openEmbedded } from '../../src/ports.ts'
import { openCluster } from '../../src/ports-cluster.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { type Device, makeDevice } from './bodies.ts'
import { type Answer, type Client, eventually } from './client.ts'
import type { Rng } from './rng.ts'

export const PARTITIONS = 4
export const quiet: Progress = openProgress({ write: () => undefined }, systemClock)

export type Ops = Awaited<ReturnType<typeof openOps>>

/** The ports of a data folder that no process has. */
export const openOps = (dataDir: string, partitions = PARTITIONS) =>
  openWith(openEmbedded, { FINGERPOST_DATA_DIR: dataDir, FINGERPOST_DATA_PARTITIONS: String(partitions) })

/** Does `work` with them, and leaves the folder to the next however it ends. */
export async function withOps<T>(dataDir: string, work: (ops: Ops) => Promise<T>, partitions = PARTITIONS): Promise<T> {
  const ops = await openOps(dataDir, partitions)
  try {
    return await work(ops)
  } finally {
    await ops.close()
  }
}

/** The ports of a cluster, whoever else works on it. */
export const openClusterOps = (env: Readonly<Record<string, string>>) => openWith(openCluster, env)

async function openWith(open: typeof openEmbedded, env: Readonly<Record<string, string>>) {
  const logger = openLogger('silent')
  const lifetime = createLifetime(logger)
  try {
    const ports = await open(readConfig(env), logger, lifetime)
    await ports.startHistory(lifetime.stopping)
    return {
      ...ports,
      clock: systemClock,
      progress: quiet,
      close: () => lifetime.settle().then(() => lifetime.close()),
    }
  } catch (error) {
    await lifetime.close()
    throw error
  }
}

/** Trims as the job does when everything is old enough: identifications first, then events. */
export async function trimAll({ log, kv, partitions }: Ops): Promise<void> {
  for (let partition = 0; partition < partitions; partition++) {
    const scope = partitionScope(partition)
    const [decided] = await kv.get<number>(scope, [DECIDED_TO])
    await log.trim('identifications', partition, decided?.value ?? 0)
    const positions = await Promise.all([kv.position(scope, ENGINE_POSITION), kv.position(scope, SINK_POSITION)])
    await log.trim('events', partition, Math.min(...positions.map((position) => position ?? 0)))
  }
}

export interface Visit {
  readonly device: Device
  readonly body: Readonly<Record<string, unknown>>
  /** What the secret key was answered. */
  readonly event: {
    readonly requestId: string
    readonly visitorId: string
    readonly visitorFound: boolean
    readonly firstSeenAt: string
    readonly storageToken: string
    readonly verdict: string
    readonly matchedRules: readonly { readonly id: string }[]
    readonly monitorMatches: readonly { readonly id: string }[]
  }
}

export const makeDevices = (random: Rng, count: number, from = 0): Device[] =>
  Array.from({ length: count }, (_, i) => makeDevice(random, from + i))

let nonces = 0

/** Each device once, some at a time. Most bring their token back. */
export async function visitAll(
  client: Client,
  random: Rng,
  devices: readonly Device[],
  visits: Visit[] = [],
): Promise<Visit[]> {
  const waiting = [...devices]
  const one = async () => {
    for (let device = waiting.shift(); device !== undefined; device = waiting.shift()) {
      const { body: page, headers, userAgent } = device.request
      const body = {
        ...page,
        ip: device.ip,
        userAgent,
        headers,
        storageToken: random.chance(0.9) ? device.token : null,
        nonce: `nonce-of-a-visit-${String(++nonces).padStart(8, '0')}`,
        ...(device.account === null ? {} : { linkedId: device.account }),
      }
      let answer = await client.identify(body)
      // Accepted, but whoever decides was away for longer than a request waits. The same request again finds the answer.
      if (answer.status === 202) {
        answer = await eventually(
          () => client.identify(body),
          ({ status }) => status !== 202,
        )
      }
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text.slice(0, 300)}`)
      device.token = answer.body.storageToken
      visits.push({ device, body, event: answer.body })
    }
  }
  await Promise.all(Array.from({ length: 8 }, one))
  return visits
}

/** The same request once more. */
export const repeat = (client: Client, { body }: Visit): Promise<Answer> => client.identify(body)

export async function makeRule(client: Client, name: string, field: string, value: unknown, status = 'live') {
  const body = {
    name,
    conditions: { operator: 'AND', rules: [{ field, operator: 'equals', value }] },
    action: { verdict: 'challenge', challengeType: 'captcha' },
    status,
  }
  const made = await client.send('POST', '/v1/rules', { body })
  if (made.status !== 201) throw new Error(`${made.status} ${made.text}`)
  return made.body as { readonly id: string }
}

export interface Listed {
  readonly requestId: string
  readonly visitorId: string
  readonly verdict: string
}

/** Every event of the lists, page by page. */
export async function listEvents(client: Client): Promise<Listed[]> {
  const events: Listed[] = []
  let cursor: string | null = null
  do {
    const page: Answer = await client.get(`/v1/events?limit=100${cursor === null ? '' : `&cursor=${cursor}`}`)
    if (page.status !== 200) throw new Error(`${page.status} ${page.text}`)
    events.push(...page.body.data)
    cursor = page.body.nextCursor
  } while (cursor !== null)
  return events
}

export const listAll = async (client: Client): Promise<string[]> =>
  (await listEvents(client)).map(({ requestId }) => requestId)

export const sorted = (texts: readonly string[]): string[] => [...texts].sort()
export const requestIds = (visits: readonly Visit[]): string[] => sorted(visits.map(({ event }) => event.requestId))

/** Resolves when the lists show as many events as there were visits, or when waiting is over. */
export const listedAll = (client: Client, visits: readonly Visit[]): Promise<string[]> =>
  eventually(
    () => listAll(client),
    (ids) => ids.length >= visits.length,
  )

/** What the API says of a visitor. */
export interface VisitorShown {
  readonly visitorId: string
  readonly totalVisits: number
}

export async function visitorsOf(client: Client, ids: Iterable<string>): Promise<Map<string, VisitorShown>> {
  const visitors = new Map<string, VisitorShown>()
  for (const id of ids) visitors.set(id, (await client.get(`/v1/visitors/${id}`)).body)
  return visitors
}

/** Visitors are read from the checkpoint, which follows what was taken over a moment later. */
export async function checkVisitors(
  t: Test,
  client: Client,
  wanted: ReadonlyMap<string, VisitorShown>,
  why = 'devices, addresses, accounts and verdicts',
): Promise<void> {
  for (const [id, visitor] of wanted) {
    const { body } = await eventually(
      () => client.get(`/v1/visitors/${id}`),
      ({ body }) => isDeepStrictEqual(body, visitor),
    )
    t.same(body, visitor, `${id}: ${why}`)
  }
}

/** As many visits as there are events, by visitor. */
export async function checkTotals(t: Test, client: Client, events: readonly { readonly visitorId: string }[]) {
  const totals = new Map<string, number>()
  for (const { visitorId } of events) totals.set(visitorId, (totals.get(visitorId) ?? 0) + 1)
  for (const [id, total] of totals) {
    const { body } = await eventually(
      () => client.get(`/v1/visitors/${id}`),
      ({ body }) => body?.totalVisits === total,
    )
    t.equal(body?.totalVisits, total, `visits of ${id}`)
  }
}

export interface RuleShown {
  readonly id: string
  readonly name: string
  readonly stats: {
    readonly matchCount: number
    readonly monitorMatchCount: number
    readonly lastMatchAt: string | null
  }
}

/** Rules as the API shows them, with their version and, once they have caught up with `visits`, their counts. */
export async function rulesOf(client: Client, visits: readonly Visit[]): Promise<RuleShown[]> {
  const matches = visits.flatMap(({ event }) => [...event.matchedRules, ...event.monitorMatches])
  const ask = async () => {
    const { body } = await client.get('/v1/rules?limit=100')
    const shown = await Promise.all(body.data.map(({ id }: { id: string }) => client.get(`/v1/rules/${id}`)))
    return shown.map(({ body, headers }: Answer) => ({ version: headers.get('etag'), ...(body as RuleShown) }))
  }
  return eventually(ask, (rules) => {
    const counted = rules.reduce((sum, { stats }) => sum + stats.matchCount + stats.monitorMatchCount, 0)
    return counted >= matches.filter(({ id }) => rules.some((rule) => rule.id === id)).length
  })
}

/** Rules of `rulesOf`, equal but for the moment of the last match: of matches that came together either may count as it. */
export function checkRules(t: Test, rules: readonly RuleShown[], wanted: readonly RuleShown[]): void {
  const timeless = ({ stats, ...rule }: RuleShown) => ({ ...rule, stats: { ...stats, lastMatchAt: null } })
  t.same(rules.map(timeless), wanted.map(timeless), 'rules with their versions and counts')
  for (const [at, { stats }] of rules.entries()) {
    const other = wanted[at]?.stats.lastMatchAt ?? null
    t.equal(stats.lastMatchAt === null, other === null)
    if (stats.lastMatchAt === null || other === null) continue
    t.ok(Math.abs(Date.parse(stats.lastMatchAt) - Date.parse(other)) < 30_000, 'when they matched last')
  }
}

/** ClickHouse keeps parts that were replaced for eight minutes in case of a power cut; from now on for a second. */
export const replacePartsSoon = (dataDir: string): Promise<void> =>
  withOps(dataDir, async ({ clickhouse }) => {
    const soon = 'old_parts_lifetime = 1, cleanup_delay_period = 1, max_cleanup_delay_period = 1'
    for (const table of ['events', 'quarantine']) {
      await clickhouse.command(`ALTER TABLE ${table} MODIFY SETTING ${soon}, cleanup_delay_period_random_add = 0`)
    }
  })
