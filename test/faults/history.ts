// One history of a deployment with everything in it that commands must carry over: made once, killed, and its folder copied for
// each command. What lies before the seam can be cut off its log as if it were old.

import { join } from 'node:path'
import { requestTime } from '../../src/domain/ids.ts'
import { decodeEventsRecord } from '../../src/events/record.ts'
import { rebuildRecordsOf } from '../../src/ops/rebuild-read.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import type { Device } from '../helpers/bodies.ts'
import { type Client, clientOf, eventually } from '../helpers/client.ts'
import {
  listAll,
  makeDevices,
  type Ops,
  PARTITIONS,
  type RuleShown,
  type Visit,
  type VisitorShown,
  visitAll,
  visitorsOf,
  withOps,
} from '../helpers/deployment.ts'
import { sized } from '../helpers/depth.ts'
import { copyFolder } from '../helpers/folder.ts'
import type { Rng } from '../helpers/rng.ts'
import { type Keys, startServer, temporaryFolder } from '../helpers/server.ts'
import {
  askForErasure,
  counted,
  deviceOf,
  type Event,
  eventsOfMerged,
  eventsOfSplit,
  listsOf,
  type Merged,
  makeConfiguration,
  makeLists,
  makeMerged,
  makeSplit,
  type Split,
  sent,
} from './history-parts.ts'

const DEVICES = sized({ quick: 8, usual: 24, long: 80 })
const DEVICES_UNSEEN = sized({ quick: 8, usual: 16, long: 40 })

export interface History {
  readonly random: Rng
  readonly keys: Keys
  readonly port: number
  /** As kill -9 left it, with all of its log. */
  readonly folder: string
  /** When the newest of what may be cut off was decided. */
  readonly seamMs: number
  /** All of the live environment that was not erased, under the visitor whose it is now. */
  readonly events: readonly Event[]
  /** Of an erased visitor. */
  readonly erased: readonly Event[]
  /** Every device once with its last visit, and those at the end that nobody has looked at. */
  readonly visits: readonly Visit[]
  readonly unseen: readonly Visit[]
  /** One of each lies before the seam, one behind it. */
  readonly merged: readonly Merged[]
  readonly split: readonly Split[]
  readonly said: ReadonlyMap<string, Readonly<Record<string, unknown>>>
  readonly lists: readonly string[]
  readonly listed: unknown
  readonly audit: unknown
  /** Without those of whom more became known at the end. */
  readonly visitors: ReadonlyMap<string, VisitorShown>
  readonly rules: readonly RuleShown[]
  readonly revoked: string
  readonly kept: string
  /** Asked for in the test environment, and not at its end. */
  readonly erasure: { readonly erasureId: string; readonly requestedAt: string; readonly visitorId: string }
}

/** Of every visitor as many visits as there are events. */
async function allCounted(client: Client, events: readonly Event[]): Promise<void> {
  const totals = new Map<string, number>()
  for (const { visitorId } of events) totals.set(visitorId, (totals.get(visitorId) ?? 0) + 1)
  for (const [id, total] of totals) {
    const { body, text } = await counted(client, id, total)
    if (body?.totalVisits !== total) throw new Error(`${total} visits of ${id}: ${text}`)
  }
}

export async function makeHistory(random: Rng): Promise<History> {
  const folder = temporaryFolder()
  const env = { FINGERPOST_DATA_PARTITIONS: String(PARTITIONS), FINGERPOST_PURGE_EVERY_SECONDS: '3600' }
  const server = await startServer({ dataDir: folder, env })
  const client = clientOf(server)
  const { keys, port } = server
  const events: Event[] = []
  const said = new Map<string, Record<string, unknown>>()
  const visits: Visit[] = []
  const devices = makeDevices(random, DEVICES)
  const visit = async (some: readonly Device[]) => {
    const latest = await visitAll(client, random, some)
    visits.push(...latest)
    events.push(...latest.map(({ event }) => event))
  }
  const say = async (event: Event | undefined, changes: object) => {
    const { requestId } = event as Event
    await sent(client, 'PATCH', `/v1/events/${requestId}`, changes)
    said.set(requestId, { ...said.get(requestId), ...changes })
  }
  const listed = () =>
    eventually(
      () => listAll(client),
      (ids) => ids.length >= events.length,
    )

  const { gone, revoked, kept } = await makeConfiguration(client)
  await visit(devices)
  const [first, second, third] = events
  const victim = events[5]?.visitorId
  await visit(devices)
  await sent(client, 'DELETE', `/v1/rules/${gone}`)
  const { lists, visits: caught } = await makeLists(client, devices.slice(0, 2))
  events.push(...caught.map(({ event }) => event))
  const moved = { screenResolution: { value: [2_560, 1_440] }, canvas: { value: null } }
  const oldMerged = await makeMerged(client, deviceOf(10, 1, '198.51.100.1', {}), deviceOf(10, 1, '203.0.113.9', moved))
  const oldSplit = await makeSplit(client, deviceOf(20, 2, '198.51.101.1'), deviceOf(20, 3, '203.0.114.9'))
  events.push(...eventsOfMerged(oldMerged), ...eventsOfSplit(oldSplit))
  await listed()
  await say(first, { linkedId: 'said-0', label: 'fraud' })
  await say(second, { label: 'fraud' })
  await say(second, { label: 'legitimate', tag: { a: 1 } })
  await sent(client, 'DELETE', `/v1/visitors/${victim}`)
  const erased = events.filter(({ visitorId }) => visitorId === victim)
  const isErased = (device: Device) =>
    visits.some(({ device: one, event }) => one === device && event.visitorId === victim)
  const rest = devices.filter((device) => !isErased(device))
  events.splice(0, events.length, ...events.filter(({ visitorId }) => visitorId !== victim))
  // What was decided before is in ClickHouse and in the checkpoint: its log may go.
  await allCounted(client, events)
  const seamMs = Math.max(...events.map(({ requestId }) => requestTime(requestId) ?? 0))

  visits.splice(0)
  await visit(rest)
  await say(first, { linkedId: 'said-again' })
  await say(third, { tag: { late: true } })
  await say(events.at(-1), { label: 'fraud', linkedId: 'said-14' })
  // ClickHouse executes it while the others are waited for.
  const erasure = await askForErasure(client, keys, deviceOf(40, 40, '198.40.100.7'))
  const newMerged = await makeMerged(client, deviceOf(31, 31, '198.31.100.7'), deviceOf(32, 32, '198.32.100.7'))
  const newSplit = await makeSplit(client, deviceOf(900, 33, '198.33.100.7'), deviceOf(900, 34, '198.34.100.7'))
  events.push(...eventsOfMerged(newMerged), ...eventsOfSplit(newSplit))
  await listed()
  await allCounted(client, events)
  const merged = [oldMerged, newMerged]
  const split = [oldSplit, newSplit]
  const visitors = await visitorsOf(client, new Set(events.map(({ visitorId }) => visitorId)))
  const rules = (await client.get('/v1/rules?limit=100')).body.data.map(({ id }: { id: string }) => id)
  const shown = await Promise.all(rules.map((id: string) => client.get(`/v1/rules/${id}`)))
  const before = {
    rules: shown.map(({ body, headers }) => ({ version: headers.get('etag'), ...body })),
    listed: await listsOf(client, lists),
    audit: (await client.get('/v1/audit?limit=100')).body,
  }
  // Nobody looks: these are in the log, and hardly anywhere else, when the process dies.
  const unseen = await visitAll(client, random, makeDevices(random, DEVICES_UNSEEN, DEVICES))
  await server.kill9()
  for (const { event } of unseen) visitors.delete(event.visitorId)
  events.push(...unseen.map(({ event }) => event))
  return {
    random,
    keys,
    port,
    folder,
    seamMs,
    events,
    erased,
    visits,
    unseen,
    merged,
    split,
    said,
    lists,
    ...before,
    visitors,
    revoked,
    kept,
    erasure,
  }
}

/** A copy whose log begins behind the seam, as if what lies before had been trimmed. */
export async function copyBehindSeam({ folder, seamMs }: History): Promise<string> {
  const copy = join(temporaryFolder(), 'copy')
  copyFolder(folder, copy)
  await withOps(copy, async (ops) => {
    for (let partition = 0; partition < PARTITIONS; partition++) await trimBefore(ops, partition, seamMs)
  })
  return copy
}

async function trimBefore({ log, kv }: Ops, partition: number, seamMs: number): Promise<void> {
  const scope = partitionScope(partition)
  const last = await log.last('events', partition)
  const positions = await Promise.all([kv.position(scope, ENGINE_POSITION), kv.position(scope, SINK_POSITION)])
  const [decided] = await kv.get<number>(scope, [DECIDED_TO])
  for await (const { seq, bytes } of rebuildRecordsOf(log, 'events', partition, 0, last)) {
    const { from, items } = decodeEventsRecord(bytes)
    if (!items.some(({ requestId }) => (requestTime(requestId) ?? 0) > seamMs)) continue
    await log.trim('identifications', partition, Math.min(decided?.value ?? 0, from - 1))
    return log.trim('events', partition, Math.min(seq - 1, ...positions.map((position) => position ?? 0)))
  }
}
