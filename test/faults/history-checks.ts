// What a started server must show of a history, whatever was done to the folder it runs on.

import type { Test } from 'tap'
import { requestTime } from '../../src/domain/ids.ts'
import { type Client, eventually } from '../helpers/client.ts'
import {
  checkRules,
  checkTotals,
  checkVisitors,
  listAll,
  repeat,
  rulesOf,
  sorted,
  type Visit,
  visitAll,
} from '../helpers/deployment.ts'
import type { History } from './history.ts'
import { counted, type Event, listsOf, type Merged, type Split, visitWith } from './history-parts.ts'

/** A history and what came after it. `matching` are the events that rules still count. */
export interface Branch extends History {
  readonly events: Event[]
  readonly matching: Event[]
  /** Of an event whose row ClickHouse refused: it counts, and no list shows it. */
  readonly quarantined: string
  readonly visitors: Map<string, { readonly visitorId: string; readonly totalVisits: number }>
}

export const branchOf = (history: History, uncounted: readonly Event[] = []): Branch => ({
  ...history,
  quarantined: '',
  events: [...history.events],
  matching: [...history.events, ...uncounted],
  visitors: new Map(history.visitors),
})

export async function checkHistory(t: Test, client: Client, branch: Branch): Promise<void> {
  await checkEvents(t, client, branch)
  await checkVisitors(t, client, branch.visitors)
  for (const merged of branch.merged) await checkMerged(t, client, branch, merged)
  for (const split of branch.split) await checkSplit(t, client, branch, split)
  await checkSaid(t, client, branch)
  await checkConfiguration(t, client, branch)
  await checkErased(t, client, branch)
}

/** Each event once in the lists and by id, and every visitor with as many visits as it has. */
async function checkEvents(t: Test, client: Client, { events, quarantined, merged }: Branch): Promise<void> {
  const shown = events.filter(({ requestId }) => requestId !== quarantined)
  const listed = await eventually(
    () => listAll(client),
    (ids) => ids.length >= shown.length,
  )
  t.same(sorted(listed), sorted(shown.map(({ requestId }) => requestId)), 'every event is listed once')
  // Those of merged visitors keep the name that they were decided under.
  const renamed = new Set(merged.flatMap(({ visits }) => visits.map(({ event }) => event.requestId)))
  for (const { requestId, visitorId, verdict } of shown.filter((event) => !renamed.has(event.requestId)).slice(-20)) {
    t.match(await client.get(`/v1/events/${requestId}`), { status: 200, body: { visitorId, verdict } })
  }
  await checkTotals(t, client, events)
}

const totalOf = ({ events }: Branch, visitorId: string) =>
  events.filter((event) => event.visitorId === visitorId).length

async function checkMerged(
  t: Test,
  client: Client,
  branch: Branch,
  { survivor, alias, visits }: Merged,
): Promise<void> {
  const { body } = await counted(client, alias, totalOf(branch, survivor))
  const firstSeenAt = visits[0]?.event.firstSeenAt
  t.match(body, { visitorId: survivor, firstSeenAt, totalVisits: totalOf(branch, survivor) }, 'who stands for whom')
}

async function checkSplit(t: Test, client: Client, branch: Branch, { owner, back, moved, to }: Split): Promise<void> {
  for (const [id, visits] of [
    [owner.event.visitorId, [owner, back]],
    [to, moved],
  ] as const) {
    const { body } = await counted(client, id, totalOf(branch, id))
    t.match(body, { visitorId: id, totalVisits: totalOf(branch, id), linkedAccounts: 1 }, 'two visitors')
    const { body: page } = await client.get(`/v1/events?visitorId=${id}`)
    const ids = page.data.map(({ requestId }: Event) => requestId).slice(-visits.length)
    t.same(ids, visits.map(({ event }) => event.requestId).reverse(), 'the events of each')
  }
  const [first] = moved
  t.equal((await client.get(`/v1/events/${first?.event.requestId}`)).body.visitorId, to)
}

/** Of those that ClickHouse alone knows as of those that are still in the log. */
async function checkSaid(t: Test, client: Client, { said }: Branch): Promise<void> {
  for (const [requestId, changes] of said) {
    const { body } = await client.get(`/v1/events/${requestId}`)
    for (const [name, value] of Object.entries(changes)) t.same(body[name], value, `${name} of ${requestId}`)
    if (changes.linkedId === undefined) continue
    const found = () => client.get(`/v1/events?linkedId=${changes.linkedId}`)
    t.equal((await eventually(found, ({ body }) => body.data.length === 1)).body.data.length, 1, 'found by it')
  }
}

async function checkConfiguration(t: Test, client: Client, branch: Branch): Promise<void> {
  const { matching } = branch
  const shown = await rulesOf(
    client,
    matching.map((event) => ({ event }) as Visit),
  )
  const wanted = branch.rules.map((rule) => {
    const of = (name: 'matchedRules' | 'monitorMatches') =>
      matching.filter((event) => event[name].some(({ id }) => id === rule.id))
    const [live, monitored] = [of('matchedRules'), of('monitorMatches')]
    const lastMs = Math.max(...live.map(({ requestId }) => requestTime(requestId) ?? 0))
    const lastMatchAt = live.length === 0 ? null : new Date(lastMs).toISOString()
    return {
      ...rule,
      stats: { ...rule.stats, matchCount: live.length, monitorMatchCount: monitored.length, lastMatchAt },
    }
  })
  checkRules(t, shown, wanted)
  t.same((await client.get('/v1/audit?limit=100')).body, branch.audit, 'who changed what')
  t.same(await listsOf(client, branch.lists), branch.listed, 'lists and their entries, with what rules put on them')
  t.equal((await client.get('/v1/rules', branch.revoked)).status, 401, 'a revoked key stays revoked')
  t.equal((await client.get('/v1/rules', branch.kept)).status, 200)
}

async function checkErased(t: Test, client: Client, { erased, erasure, keys }: Branch): Promise<void> {
  t.equal((await client.get(`/v1/visitors/${erased[0]?.visitorId}`)).status, 404)
  for (const { requestId } of erased) t.equal((await client.get(`/v1/events/${requestId}`)).status, 404)
  t.equal((await client.get(`/v1/visitors/${erasure.visitorId}`, keys.testSecret)).status, 404)
  const asked = await client.get(`/v1/erasures/${erasure.erasureId}`, keys.testSecret)
  t.equal(asked.status, 200, 'an erasure is still known')
  t.ok(Math.abs(Date.parse(asked.body?.requestedAt) - Date.parse(erasure.requestedAt)) < 30_000, asked.text)
  const other = await client.get(`/v1/erasures/${erasure.erasureId}`)
  t.equal(other.status, 404, 'another environment knows nothing of it')
}

/** Requests that were decided when nobody looked. */
export async function checkRepeated(t: Test, client: Client, { unseen }: History): Promise<void> {
  for (const visit of unseen) {
    const again = await repeat(client, visit)
    t.match(again, { status: 200, body: { requestId: visit.event.requestId } }, 'a nonce is answered with its event')
    t.equal(again.headers.get('idempotent-replayed'), 'true')
  }
}

/** Visits after which the branch is longer: by tokens, by an erased token and by looks alone. */
export async function checkRecognition(t: Test, client: Client, branch: Branch): Promise<void> {
  const add = (event: Event) => {
    branch.events.push(event)
    branch.matching.push(event)
    branch.visitors.delete(event.visitorId)
  }
  const comesAs = async ({ device, event }: Visit, visitorId: string, why: string) => {
    const { event: again } = await visitWith(client, device, event.storageToken)
    t.equal(again.visitorId, visitorId, why)
    add(again)
  }
  for (const { survivor, visits } of branch.merged) {
    for (const visit of visits) await comesAs(visit, survivor, 'a token of merged visitors')
  }
  for (const { owner, moved, to } of branch.split) {
    for (const visit of moved) await comesAs(visit, to, 'a token that was split off')
    await comesAs(owner, owner.event.visitorId, 'the token of the owner')
  }
  const known = [...branch.visits.slice(0, 6), ...branch.unseen.slice(0, 6)]
  for (const visit of known) await comesAs(visit, visit.event.visitorId, 'a token')
  const { body: stranger } = await client.identify({ storageToken: branch.erased[0]?.storageToken })
  t.not(stranger.visitorId, branch.erased[0]?.visitorId, 'an erased token is as good as none')
  add(stranger)
  const homes = new Map(known.map(({ device, event }) => [device.number, event.visitorId]))
  const looks = known.map(({ device }) => ({ ...device, token: null }))
  const others = await visitAll(client, branch.random, looks)
  const found = others.filter(({ device, event }) => homes.get(device.number) === event.visitorId)
  t.ok(found.length > known.length / 2, `${found.length} of ${known.length} are recognised by their looks`)
  for (const { event } of others) add(event)
}
