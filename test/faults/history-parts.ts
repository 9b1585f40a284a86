// The parts of a history that commands are run on: what merges, splits, lists, rules, keys and erasures leave behind.

import type { Device } from '../helpers/bodies.ts'
import { browserBody, CHROME, type Client, eventually } from '../helpers/client.ts'
import { makeRule, type Visit } from '../helpers/deployment.ts'
import type { Keys } from '../helpers/server.ts'

export type Event = Visit['event']

/** Two ids of one visitor. */
export interface Merged {
  readonly survivor: string
  readonly alias: string
  /** With the tokens that each id had issued. */
  readonly visits: readonly Visit[]
}

/** Two visitors that were one: the owner, and who went about with its token. */
export interface Split {
  readonly owner: Visit
  /** The owner's, after the split: of what it looked like nothing was left when its latest visit was moved. */
  readonly back: Visit
  readonly moved: readonly Visit[]
  readonly to: string
}

/** Throws unless the answer is a good one. */
export async function sent(client: Client, method: string, path: string, body?: unknown) {
  const answer = await client.send(method, path, body === undefined ? {} : { body })
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
  return answer.body
}

export function deviceOf(gpu: number, n: number, ip: string, components?: object): Device {
  const body = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce GTX ${gpu} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(body.components, {
    fonts: { value: [`Font ${n}`] },
    canvas: { value: { winding: true, geometry: `g${n}`, text: `t${n}`, stable: true } },
    audio: { value: 700 + n },
    screenResolution: { value: [1_000 + 10 * n, 800] },
    ...components,
  })
  return {
    number: 10_000 + n,
    ip,
    account: components === undefined ? `account ${n}` : null,
    token: null,
    request: { body, userAgent: CHROME, headers: {} },
  } as unknown as Device
}

/** With the given token, whatever the device had. */
export async function visitWith(
  client: Client,
  device: Device,
  storageToken: string | null,
  tag?: object,
): Promise<Visit> {
  const { body: page, headers, userAgent } = device.request
  const linkedId = device.account === null ? {} : { linkedId: device.account }
  const body = {
    ...page,
    ip: device.ip,
    userAgent,
    headers,
    storageToken,
    ...linkedId,
    ...(tag === undefined ? {} : { tag }),
  }
  const answer = await client.identify(body)
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return { device, body, event: answer.body }
}

/** Visitors are read from the checkpoint, which follows what was decided. */
export const counted = (client: Client, visitorId: string, visits: number) =>
  eventually(
    () => client.get(`/v1/visitors/${visitorId}`),
    ({ body }) => body?.totalVisits === visits,
  )

export async function makeMerged(client: Client, one: Device, other: Device): Promise<Merged> {
  const [first, second] = [await visitWith(client, one, null), await visitWith(client, other, null)]
  const [survivor, alias] = [first.event.visitorId, second.event.visitorId]
  if (survivor === alias) throw new Error('one visitor already')
  await Promise.all([counted(client, survivor, 1), counted(client, alias, 1)])
  await sent(client, 'POST', `/v1/visitors/${survivor}/merge`, { visitorId: alias })
  const late = await visitWith(client, other, second.event.storageToken)
  if (late.event.visitorId !== survivor) throw new Error('not merged')
  return { survivor, alias, visits: [first, second, late] }
}

export async function makeSplit(client: Client, one: Device, other: Device): Promise<Split> {
  const owner = await visitWith(client, one, null)
  const copied = await visitWith(client, other, owner.event.storageToken)
  const again = await visitWith(client, other, copied.event.storageToken)
  const id = owner.event.visitorId
  if (copied.event.visitorId !== id || again.event.visitorId !== id) throw new Error('not known by its token')
  const requestIds = [copied.event.requestId, again.event.requestId]
  // Of visits that ClickHouse does not have yet a split knows no more than their number; the addresses of an export come from there.
  const inHistory = (said: readonly { readonly events: number }[]) => said.reduce((sum, { events }) => sum + events, 0)
  await eventually(
    () => client.get(`/v1/visitors/${id}/export`),
    ({ body }) => inHistory(body.addresses) === 3,
  )
  const { visitorId: to } = await sent(client, 'POST', `/v1/visitors/${id}/split`, { requestIds })
  await Promise.all([counted(client, id, 1), counted(client, to, 2)])
  const back = await visitWith(client, one, owner.event.storageToken)
  await counted(client, id, 2)
  return { owner, back, moved: [copied, again], to }
}

export const eventsOfMerged = ({ survivor, visits }: Merged): Event[] =>
  visits.map(({ event }) => ({ ...event, visitorId: survivor }))
export const eventsOfSplit = ({ owner, back, moved, to }: Split): Event[] => [
  owner.event,
  back.event,
  ...moved.map(({ event }) => ({ ...event, visitorId: to })),
]

export const listsOf = async (client: Client, ids: readonly string[]) => {
  const answers = ids.flatMap((id) => [client.get(`/v1/lists/${id}`), client.get(`/v1/lists/${id}/entries`)])
  return (await Promise.all(answers)).map(({ status, body }) => [status, body])
}

/** A list that was changed in every way, one that rules filled, and one that is gone. */
export async function makeLists(client: Client, devices: readonly Device[]) {
  const make = async (name: string, type: string) =>
    (await sent(client, 'POST', '/v1/lists', { name, type })).id as string
  const change = (id: string, body: object) => sent(client, 'PATCH', `/v1/lists/${id}/entries`, body)
  const [nets, caught, gone] = [await make('nets', 'ip'), await make('caught', 'email'), await make('gone', 'email')]
  await change(nets, { add: ['10.0.0.0/8', '192.0.2.1', { value: '::1', ttl: 90_000 }] })
  await change(nets, { remove: ['192.0.2.1'], add: [{ value: '::2', reason: 'x' }] })
  await change(gone, { add: ['a@b.example'] })
  await sent(client, 'DELETE', `/v1/lists/${gone}`)
  const rule = await sent(client, 'POST', '/v1/rules', {
    name: 'catch',
    conditions: { operator: 'AND', rules: [{ field: 'tag.mail', operator: 'exists', value: true }] },
    action: { verdict: 'allow', sideEffects: [{ type: 'addToList', list: 'caught', value: 'tag.mail' }] },
    status: 'live',
    priority: 1,
  })
  const visits: Visit[] = []
  for (const [i, device] of devices.entries()) {
    visits.push(await visitWith(client, device, device.token, { mail: `m${i}@b.example` }))
  }
  await eventually(
    () => client.get(`/v1/lists/${caught}`),
    ({ body }) => body.entryCount === devices.length,
  )
  await sent(client, 'DELETE', `/v1/rules/${rule.id}`)
  return { lists: [nets, caught, gone], visits }
}

/** Rules that match, are watched, are deleted and are changed, once in vain; a key that is revoked and one that is not. */
export async function makeConfiguration(client: Client) {
  const live = await makeRule(client, 'linked', 'visitorFound', true)
  await makeRule(client, 'watched', 'visitorFound', true, 'monitor')
  const gone = await makeRule(client, 'gone', 'visitorFound', false)
  const version = (await client.get(`/v1/rules/${live.id}`)).headers.get('etag') ?? ''
  const change = (name: string) =>
    client.send('PUT', `/v1/rules/${live.id}`, { body: { name }, headers: { 'If-Match': version } })
  const changes = [(await change('renamed')).status, (await change('of an older version')).status]
  if (changes.join() !== '200,409') throw new Error(`changes of a rule: ${changes}`)
  const makeKey = async () =>
    (await client.admin('POST', '/workspaces/ws_default/keys', { kind: 'secret', environment: 'live' })).body
  const [revoked, kept] = [await makeKey(), await makeKey()]
  await client.admin('DELETE', `/workspaces/ws_default/keys/${revoked.id}`)
  return { gone: gone.id, revoked: revoked.key as string, kept: kept.key as string }
}

/** A visitor of the test environment that is erased; its receipt will not be done before a purge. */
export async function askForErasure(client: Client, keys: Keys, device: Device) {
  const key = keys.testSecret
  const { body: event } = await client.identify({ ...device.request.body, ip: device.ip }, { key })
  const path = `/v1/visitors/${event.visitorId}`
  await eventually(
    () => client.get(path, key),
    ({ status }) => status === 200,
  )
  const { body } = await client.send('DELETE', path, { key })
  const { body: receipt } = await client.get(`/v1/erasures/${body.erasureId}`, key)
  return { erasureId: body.erasureId, requestedAt: receipt.requestedAt, visitorId: event.visitorId }
}
