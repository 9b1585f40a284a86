// Sequences of calls against a model of what must be there: rules, lists with their entries, webhooks and visitors are made,
// changed and removed in any order, and after each call its answer and what is read back are compared with the model.

import fc from 'fast-check'
import { type Answer, type Client, clientOf, eventually, type Remote } from '../helpers/client.ts'
import { type Device, deviceOf } from '../helpers/devices.ts'

interface Rule {
  readonly id: string
  name: string
  status: string
  priority: number
  verdict: string
}
interface List {
  readonly id: string
  readonly name: string
  description: string | null
  readonly entries: Set<string>
}
interface Webhook {
  readonly id: string
  url: string
  status: string
  description: string | null
}
interface Visitor {
  readonly id: string
  /** Events by the id they count under; newest last. */
  readonly requests: string[]
  token: string
  readonly device: Device
}

/** What must be there. */
interface Model {
  readonly rules: Map<string, Rule>
  readonly lists: Map<string, List>
  readonly webhooks: Map<string, Webhook>
  readonly visitors: Map<string, Visitor>
  /** Ids of what is gone: each answers 404 for ever. */
  readonly gone: string[]
  /** Of visitors that were merged into another. */
  readonly aliases: Map<string, string>
}

interface Real {
  readonly client: Client
  readonly key: string
  /** Makes names and devices of this sequence unlike those of any other. */
  readonly mark: string
  devices: number
}

type Command = fc.AsyncCommand<Model, Real>

export interface StatesResult {
  readonly sequences: number
  readonly calls: number
  /** The smallest sequence that goes wrong, and how. */
  readonly finding: string | null
}

const COMMANDS_MAX = 25
const WAIT_MS_MAX = 60_000
/** A visitor is known a second after its first visit, on a machine that has time. */
const KNOWN_MS_MAX = 10_000
/** More than a sequence meets; whoever had one before was erased. */
const DEVICES = 200
const conditions = (value: string) => ({
  operator: 'AND',
  rules: [{ field: 'tag.nothing', operator: 'equals', value }],
})

class Differs extends Error {
  override readonly name = 'Differs'
}
function same(what: string, found: unknown, wanted: unknown): void {
  const [is, should] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (is !== should) throw new Differs(`${what}: ${is}, and should be ${should}`)
}
const nth = <T>(all: Iterable<T>, n: number): T | undefined => {
  const list = [...all]
  return list[n % Math.max(1, list.length)]
}

let calls = 0
async function call(real: Real, method: string, path: string, status: number, body?: unknown): Promise<Answer> {
  calls += 1
  const answer = await real.client.send(method, path, { key: real.key, ...(body === undefined ? {} : { body }) })
  if (answer.status !== status) throw new Differs(`${method} ${path} answered ${answer.status} ${answer.text}`)
  return answer
}

function command(name: string, drawn: unknown, run: (model: Model, real: Real) => Promise<void>): Command {
  return { check: () => true, run, toString: () => `${name}(${JSON.stringify(drawn)})` }
}

const inOrder = ({ rules }: Model): Rule[] => [...rules.values()].sort((a, b) => a.priority - b.priority)

async function checkRules(model: Model, real: Real): Promise<void> {
  const { body } = await call(real, 'GET', '/v1/rules?limit=100', 200)
  const shown = ({ id, name, status, priority }: Rule) => ({ id, name, status, priority })
  same('rules in their order', body.data.map(shown), inOrder(model).map(shown))
  same('how many rules', body.total, model.rules.size)
}

async function checkList(list: List, real: Real): Promise<void> {
  const { body } = await call(real, 'GET', `/v1/lists/${list.id}`, 200)
  same('a list', [body.name, body.description, body.entryCount], [list.name, list.description, list.entries.size])
  const entries = (await call(real, 'GET', `/v1/lists/${list.id}/entries?limit=100`, 200)).body.data
  const values = entries.map(({ value }: { value: string }) => value).sort()
  same('its entries', values, [...list.entries].sort())
}

async function checkVisitor(model: Model, visitor: Visitor, real: Real): Promise<void> {
  const wanted = visitor.requests.length
  const read = () => real.client.get(`/v1/visitors/${visitor.id}`, real.key)
  const { body } = await eventually(read, (answer) => answer.body.totalVisits === wanted, WAIT_MS_MAX)
  same('visits', body.totalVisits, wanted)
  const listed = [...model.lists.values()].filter(({ entries }) => entries.has(visitor.id)).map(({ name }) => name)
  same('lists of a visitor', [...body.lists].sort(), listed.sort())
}

const small = fc.nat({ max: 7 })
const status = fc.constantFrom('live', 'monitor', 'draft')
const verdict = fc.constantFrom('allow', 'challenge', 'block')
const EMAILS = ['a@b.example', 'c@d.example', 'e@f.example', 'g@h.example']

const createRule = fc.record({ status, verdict, priority: fc.option(fc.integer({ min: 1, max: 900 })) }).map((drawn) =>
  command('createRule', drawn, async (model, real) => {
    const name = `rule ${model.rules.size}`
    const highest = Math.max(0, ...[...model.rules.values()].map(({ priority }) => priority))
    const priority = drawn.priority ?? highest + 10
    if ([...model.rules.values()].some((rule) => rule.priority === priority)) return
    const { body } = await call(real, 'POST', '/v1/rules', 201, {
      name,
      status: drawn.status,
      conditions: conditions('x'),
      action: { verdict: drawn.verdict },
      ...(drawn.priority === null ? {} : { priority }),
    })
    model.rules.set(body.id, { id: body.id, name, status: drawn.status, priority, verdict: drawn.verdict })
    await checkRules(model, real)
  }),
)
const updateRule = fc
  .record({
    n: small,
    status: fc.option(fc.constantFrom('live', 'monitor', 'draft', 'paused')),
    verdict: fc.option(verdict),
  })
  .map((drawn) =>
    command('updateRule', drawn, async (model, real) => {
      const rule = nth(model.rules.values(), drawn.n)
      if (rule === undefined) return
      const change = {
        ...(drawn.status === null ? {} : { status: drawn.status }),
        ...(drawn.verdict === null ? {} : { action: { verdict: drawn.verdict } }),
      }
      await call(real, 'PUT', `/v1/rules/${rule.id}`, 200, change)
      rule.status = drawn.status ?? rule.status
      rule.verdict = drawn.verdict ?? rule.verdict
      const { body } = await call(real, 'GET', `/v1/rules/${rule.id}`, 200)
      same('a rule', [body.name, body.status, body.action.verdict], [rule.name, rule.status, rule.verdict])
    }),
  )
const deleteRule = small.map((n) =>
  command('deleteRule', n, async (model, real) => {
    const rule = nth(model.rules.values(), n)
    if (rule === undefined) return
    const { body } = await call(real, 'DELETE', `/v1/rules/${rule.id}`, 200)
    same('a deletion', [body.deleted, body.ruleId], [true, rule.id])
    model.rules.delete(rule.id)
    model.gone.push(`/v1/rules/${rule.id}`)
    await checkRules(model, real)
  }),
)
const createList = fc.constantFrom('email', 'visitor').map((type) =>
  command('createList', type, async (model, real) => {
    const name = `${type}_${real.mark}_${model.lists.size + model.gone.length}`
    const { body } = await call(real, 'POST', '/v1/lists', 201, { name, type })
    model.lists.set(body.id, { id: body.id, name, description: null, entries: new Set() })
    await call(real, 'POST', '/v1/lists', 409, { name: name.toUpperCase(), type: 'ip' })
  }),
)
const changeEntries = fc
  .record({ n: small, add: fc.uniqueArray(small, { maxLength: 4 }), remove: fc.uniqueArray(small, { maxLength: 3 }) })
  .map((drawn) =>
    command('changeEntries', drawn, async (model, real) => {
      const list = nth(model.lists.values(), drawn.n)
      if (list === undefined) return
      const values = list.name.startsWith('email') ? EMAILS : [...model.visitors.keys()]
      const pick = (places: readonly number[]) =>
        places.flatMap((n) => (n < values.length ? [values[n] as string] : []))
      const [add, remove] = [pick(drawn.add), pick(drawn.remove).filter((value) => !pick(drawn.add).includes(value))]
      if (add.length + remove.length === 0) return
      const added = add.filter((value) => !list.entries.has(value)).length
      const removed = remove.filter((value) => list.entries.has(value)).length
      const { body } = await call(real, 'PATCH', `/v1/lists/${list.id}/entries`, 200, { add, remove })
      for (const value of add) list.entries.add(value)
      for (const value of remove) list.entries.delete(value)
      same('what a change says', [body.added, body.removed, body.entryCount], [added, removed, list.entries.size])
      await checkList(list, real)
    }),
  )
const describeList = fc.record({ n: small, description: fc.string({ maxLength: 40 }) }).map((drawn) =>
  command('describeList', drawn, async (model, real) => {
    const list = nth(model.lists.values(), drawn.n)
    if (list === undefined) return
    await call(real, 'PUT', `/v1/lists/${list.id}`, 200, { description: drawn.description })
    list.description = drawn.description
    await checkList(list, real)
  }),
)
const deleteList = small.map((n) =>
  command('deleteList', n, async (model, real) => {
    const list = nth(model.lists.values(), n)
    if (list === undefined) return
    await call(real, 'DELETE', `/v1/lists/${list.id}`, 200)
    model.lists.delete(list.id)
    model.gone.push(`/v1/lists/${list.id}`)
    const { body } = await call(real, 'GET', '/v1/lists?limit=100', 200)
    const ids = body.data.map(({ id }: List) => id).sort()
    same('lists', ids, [...model.lists.keys()].sort())
  }),
)
const createWebhook = fc.boolean().map((isPlain) =>
  command('createWebhook', isPlain, async (model, real) => {
    const url = `https://hooks.example.com/${real.mark}/${model.webhooks.size}`
    const events = isPlain ? ['rule_match'] : ['rule.matched']
    const { body } = await call(real, 'POST', '/v1/webhooks', 201, { url, events })
    model.webhooks.set(body.id, { id: body.id, url, status: 'active', description: null })
  }),
)
const updateWebhook = fc.record({ n: small, status: fc.constantFrom('active', 'paused') }).map((drawn) =>
  command('updateWebhook', drawn, async (model, real) => {
    const webhook = nth(model.webhooks.values(), drawn.n)
    if (webhook === undefined) return
    await call(real, 'PUT', `/v1/webhooks/${webhook.id}`, 200, { status: drawn.status })
    webhook.status = drawn.status
    const { body } = await call(real, 'GET', `/v1/webhooks/${webhook.id}`, 200)
    same('a webhook', [body.url, body.status], [webhook.url, webhook.status])
  }),
)
const deleteWebhook = small.map((n) =>
  command('deleteWebhook', n, async (model, real) => {
    const webhook = nth(model.webhooks.values(), n)
    if (webhook === undefined) return
    await call(real, 'DELETE', `/v1/webhooks/${webhook.id}`, 200)
    model.webhooks.delete(webhook.id)
    model.gone.push(`/v1/webhooks/${webhook.id}`)
  }),
)
const meet = fc.constant(null).map(() =>
  command('meet', null, async (model, real) => {
    const device = deviceOf(1 + (real.devices++ % DEVICES))
    const { body } = await call(real, 'POST', '/v1/identify', 200, device)
    same('a new visitor', body.visitorFound, false)
    const { visitorId: id, storageToken: token, requestId } = body
    model.visitors.set(id, { id, requests: [requestId], token, device })
  }),
)
const meetAgain = fc.record({ n: small, byToken: fc.boolean() }).map((drawn) =>
  command('meetAgain', drawn, async (model, real) => {
    const visitor = nth(model.visitors.values(), drawn.n)
    if (visitor === undefined) return
    const storageToken = drawn.byToken ? visitor.token : null
    const { body } = await call(real, 'POST', '/v1/identify', 200, { ...visitor.device, storageToken })
    same('a known visitor', [body.visitorId, body.visitorFound], [visitor.id, true])
    visitor.requests.push(body.requestId)
    visitor.token = body.storageToken
    await checkVisitor(model, visitor, real)
    same('an event', (await call(real, 'GET', `/v1/events/${body.requestId}`, 200)).body.visitorId, visitor.id)
  }),
)
const merge = fc.record({ n: small, m: small }).map((drawn) =>
  command('merge', drawn, async (model, real) => {
    const [a, b] = [nth(model.visitors.values(), drawn.n), nth(model.visitors.values(), drawn.m)]
    if (a === undefined || b === undefined || a === b) return
    await Promise.all([a, b].map((visitor) => checkVisitor(model, visitor, real)))
    await call(real, 'POST', `/v1/visitors/${a.id}/merge`, 200, { visitorId: b.id })
    a.requests.push(...b.requests)
    model.visitors.delete(b.id)
    model.aliases.set(b.id, a.id)
    for (const { entries } of model.lists.values()) if (entries.delete(b.id)) entries.add(a.id)
    await checkVisitor(model, a, real)
    same('an alias', (await call(real, 'GET', `/v1/visitors/${b.id}`, 200)).body.visitorId, a.id)
  }),
)
const erase = small.map((n) =>
  command('erase', n, async (model, real) => {
    const visitor = nth(model.visitors.values(), n)
    if (visitor === undefined) return
    await checkVisitor(model, visitor, real)
    await call(real, 'DELETE', `/v1/visitors/${visitor.id}`, 200)
    model.visitors.delete(visitor.id)
    for (const { entries } of model.lists.values()) entries.delete(visitor.id)
    const others = [...model.aliases].flatMap(([alias, survivor]) => (survivor === visitor.id ? [alias] : []))
    for (const id of [visitor.id, ...others]) {
      model.aliases.delete(id)
      model.gone.push(`/v1/visitors/${id}`)
      await call(real, 'DELETE', `/v1/visitors/${id}`, 404)
    }
    model.gone.push(...visitor.requests.map((id) => `/v1/events/${id}`))
    for (const list of model.lists.values()) await checkList(list, real)
  }),
)
const checkGone = small.map((n) =>
  command('checkGone', n, async (model, real) => {
    const path = nth(model.gone, n)
    if (path !== undefined) await call(real, 'GET', path, 404)
  }),
)

const COMMANDS = [
  ...[createRule, updateRule, deleteRule, createList, changeEntries, describeList, deleteList],
  ...[createWebhook, updateWebhook, deleteWebhook, meet, meetAgain, meetAgain, merge, erase, checkGone],
]

/** Removes what a sequence has left, whatever went wrong in it, so that the next begins with nothing. */
async function clear({ client, key }: Real, { visitors }: Model): Promise<void> {
  for (const kind of ['rules', 'lists', 'webhooks']) {
    const { body } = await client.get(`/v1/${kind}?limit=100`, key)
    for (const { id } of body.data) await client.send('DELETE', `/v1/${kind}/${id}`, { key })
  }
  for (const { id } of visitors.values()) {
    const remove = () => client.send('DELETE', `/v1/visitors/${id}`, { key })
    await eventually(remove, ({ status }) => status === 200, KNOWN_MS_MAX)
  }
}

/** `untilMs` of performance.now(): no further sequence begins then; default: all of them run. The environment must be empty. */
export async function fuzzStates(
  server: Remote,
  { seed, sequencesMax, untilMs = Number.POSITIVE_INFINITY }: { seed: number; sequencesMax: number; untilMs?: number },
): Promise<StatesResult> {
  const client = clientOf(server)
  let sequences = 0
  const before = calls
  let devices = 1
  const property = fc.asyncProperty(
    fc.commands(COMMANDS, { maxCommands: COMMANDS_MAX, size: 'max' }),
    async (commands) => {
      if (performance.now() > untilMs) return
      sequences += 1
      const model: Model = {
        rules: new Map(),
        lists: new Map(),
        webhooks: new Map(),
        visitors: new Map(),
        gone: [],
        aliases: new Map(),
      }
      const real: Real = { client, key: server.keys.testSecret, mark: `s${sequences}`, devices }
      try {
        await fc.asyncModelRun(() => ({ model, real }), commands)
      } finally {
        devices = real.devices
        await clear(real, model)
      }
    },
  )
  const outcome = await fc.check(property, { seed, numRuns: sequencesMax, endOnFailure: false })
  const { counterexample, errorInstance } = outcome
  const finding = outcome.failed
    ? `${(errorInstance as Error).message} after ${String(counterexample?.[0])}`.slice(0, 2_000)
    : null
  return { sequences, calls: calls - before, finding }
}
