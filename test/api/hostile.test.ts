// Whatever is sent: no failure of ours, no hang, the error body of the contract, and nothing accepted that cannot be read
// back as it was.

import t, { type Test } from 'tap'
import { browserBody, CHROME, eventually, openApi } from '../helpers/client.ts'
import { DEPTH, sized } from '../helpers/depth.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, type Server } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'
import { TEXTS, VALUES } from './hostile-corpus.ts'
import { fault, forEach, isJson, MEMBERS, metric, show, VOCABULARY, wellFormed } from './hostile-tools.ts'

t.teardown(cleanUp)

const seed = testSeed()
t.comment(`SEED=${seed}`)
const random = rng(seed)
/** Counters and logs are those of a whole server: the quick run has none of its own, and leaves them to the others. */
const own = DEPTH === 'quick' ? null : await openApi()
const { server, send, identify, get } = own ?? (await openTenant())
const { keys } = server
const key = keys.testSecret
/** The corpus is whole in the place that takes every text; elsewhere a short run draws from it. */
const SIZE = {
  texts: sized({ quick: 40, usual: TEXTS.length, long: TEXTS.length }),
  /** Of those, so many are tried elsewhere as well. */
  textsElsewhere: sized({ quick: 40, usual: 120, long: TEXTS.length }),
  placesOfText: sized({ usual: 1, long: 4 }),
  values: sized({ quick: 12, usual: VALUES.length, long: VALUES.length }),
  placesOfValue: sized({ quick: 3, usual: 4, long: 10 }),
  mutations: sized({ quick: 40, usual: 120, long: 3_000 }),
  readBack: sized({ quick: 20, usual: 40, long: 300 }),
}
const drawn = random.shuffle(TEXTS).slice(0, SIZE.texts)
const drawnElsewhere = random.shuffle(TEXTS).slice(0, SIZE.textsElsewhere)
const ADDRESS = '198.18.77.177'
const EMAIL = 'somebody.private@hostile.example'

interface Accepted {
  readonly requestId: string
  /** What the event must say, lone surrogates replaced. */
  readonly says: Readonly<Record<string, unknown>>
}
const accepted: Accepted[] = []

async function stillServes(t: Test): Promise<void> {
  const { status, body } = await identify({ ...browserBody(), linkedId: 'plain' }, { key })
  t.equal(status, 200, 'a plain request succeeds afterwards')
  t.same(shapes.secretResult(body), [])
  t.same(body.tag, {})
  t.doesNotThrow(() => process.kill(server.pid, 0), 'the process is alive')
}

const json = JSON.stringify
t.test('a rule writes hostile texts to the log all the while', async (t) => {
  const { status } = await send('POST', '/v1/rules', {
    key,
    body: {
      name: 'log everything',
      conditions: { operator: 'AND', rules: [{ field: 'visitorId', operator: 'exists', value: true }] },
      action: {
        verdict: 'allow',
        sideEffects: [
          { type: 'log', level: 'warn', message: '{{linkedId}} {{url}} {{email}} {{device.browser}} {{ip}}' },
        ],
      },
      status: 'live',
    },
  })
  t.equal(status, 201)
})

t.test('every hostile text in every place that takes any text', async (t) => {
  t.ok(TEXTS.length + VALUES.length >= 300, `${TEXTS.length} texts, ${VALUES.length} values`)
  t.ok(new Set(TEXTS).size > 300)
  const faults: string[] = []
  await forEach(drawn, async (whole) => {
    const says = { url: whole.slice(0, 2_000), tag: { v: whole.slice(0, 600), [`k${whole.slice(0, 100)}`]: 1 } }
    // There are sixty copies of it in a body of 64 KiB.
    const text = whole.slice(0, 160)
    const deep = {
      value: text,
      brand: text,
      renderer: text,
      rendererUnmasked: text,
      vendor: text,
      userAgent: text,
      platform: text,
    }
    const body = {
      ...says,
      referrer: whole,
      email: EMAIL,
      mock: { ip: ADDRESS },
      automation: { detectors: { [text]: { bot: true, botKind: text } } },
      components: Object.fromEntries(
        VOCABULARY.map((name, i) => [
          name,
          { value: i % 3 === 0 ? { ...deep, model: text } : i % 3 === 1 ? [text, [text]] : text },
        ]),
      ),
    }
    const { answer, wrong } = await fault(() => identify(body, { key }))
    if (wrong !== null) faults.push(`${show(text)}: ${wrong}`)
    if (answer?.status !== 200) return void faults.push(`${show(text)}: ${answer?.status} ${answer?.text}`)
    faults.push(...shapes.secretResult(answer.body).map((fault) => `${show(text)}: ${fault}`))
    accepted.push({ requestId: answer.body.requestId, says: { ...says, url: says.url === '' ? null : says.url } })
  })
  t.same(faults, [])
  await stillServes(t)
})

t.test('every hostile text in members with rules of their own', async (t) => {
  const names = Object.keys(MEMBERS)
  // Every member in turn, from a random one on.
  const from = random.int(names.length)
  const cases = drawnElsewhere.flatMap((text, i) =>
    Array.from({ length: SIZE.placesOfText }, (_, place) => ({
      name: names[(from + i * SIZE.placesOfText + place) % names.length] as string,
      text,
    })),
  )
  const statuses = new Map<string, number>()
  await forEach(cases, async ({ name, text }) => {
    const body = (MEMBERS[name] as (text: string) => object)(text)
    const { answer, wrong } = await fault(() => identify(body, { key }))
    if (wrong !== null) t.fail(`${name} = ${show(text)}: ${wrong}`)
    const status = answer?.status ?? 0
    statuses.set(`${name} ${status}`, (statuses.get(`${name} ${status}`) ?? 0) + 1)
    if (status !== 200) return
    const faults = shapes.secretResult(answer?.body)
    if (faults.length > 0) t.fail(`${name} = ${show(text)}: ${faults}`)
    accepted.push({ requestId: answer?.body.requestId, says: name === 'linkedId' ? { linkedId: text } : {} })
  })
  const untried = names.filter((name) => ![200, 400].some((status) => statuses.has(`${name} ${status}`)))
  t.same(untried, [], 'every member was tried')
  await stillServes(t)
})

t.test('every hostile value in every member', async (t) => {
  const members = [
    'nonce',
    'sdk',
    'storageToken',
    'linkedId',
    'email',
    'tag',
    'url',
    'referrer',
    'components',
    'automation',
    'native',
    'mock',
    'ip',
    'userAgent',
    'headers',
  ]
  const cases: string[] = []
  for (const value of random.shuffle(VALUES).slice(0, SIZE.values)) {
    const share = random.shuffle(VOCABULARY).slice(0, Math.max(1, Math.min(12, Math.floor(60_000 / value.length))))
    const places = [
      value,
      `{"tag":{"v":${value}}}`,
      `{"automation":{"detectors":{"d":${value}}}}`,
      `{"mock":{"signals":${value},"scores":${value}}}`,
      ...random
        .shuffle(members)
        .map((name) => `{${json(name)}:${value}}`)
        .slice(0, 5),
    ]
    cases.push(...random.shuffle(places).slice(0, SIZE.placesOfValue - 1))
    cases.push(`{"components":{${share.map((name) => `${json(name)}:{"value":${value},"ms":${random.int(9)}}`)}}}`)
  }
  let taken = 0
  await forEach(cases, async (raw) => {
    const { answer, wrong } = await fault(() => send('POST', '/v1/identify', { key, raw }))
    if (wrong !== null) t.fail(`${show(raw)}: ${wrong}`)
    if (answer?.status !== 200) return
    taken++
    const faults = shapes.secretResult(answer.body)
    if (faults.length > 0) t.fail(`${show(raw)}: ${faults}`)
    accepted.push({ requestId: answer.body.requestId, says: {} })
  })
  t.ok(taken > SIZE.values / 3, `${taken} of ${cases.length} were accepted`)
  await stillServes(t)
})

function mutate(bytes: Uint8Array, r: Rng): Uint8Array {
  const text = Buffer.from(bytes).toString()
  const members = [...text.matchAll(/"(\w+)":/g)]
  const at = (r.pick(members).index as number) | 0
  const rest = text.slice(at)
  const name = /^"\w+":/.exec(rest)?.[0] ?? ''
  const value = () => (r.chance(0.5) ? json(r.pick(TEXTS)) : r.pick(VALUES)).slice(0, 4_000)
  switch (r.int(6)) {
    case 0: {
      const changed = Uint8Array.from(bytes)
      for (let i = r.int(4); i >= 0; i--) changed[r.int(changed.length)] = r.int(256)
      return changed
    }
    case 1:
      return bytes.subarray(0, r.int(bytes.length))
    case 2:
      return Buffer.from(`${text.slice(0, at)}${name}${value()},${rest}`)
    case 3:
      return Buffer.from(
        text.slice(0, at) +
          rest.replace(/^("\w+":)("(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|null)/, (_, n) => n + value()),
      )
    case 4:
      return Buffer.from(`${text.slice(0, at)}${json(r.pick(TEXTS))}:${value()},${rest}`)
    default: {
      const from = r.int(bytes.length)
      return Buffer.concat([bytes.subarray(0, from), r.bytes(1 + r.int(8)), bytes.subarray(from + r.int(8))])
    }
  }
}

t.test('mutations of a valid body', async (t) => {
  const valid = Buffer.from(
    json({ ...browserBody(), linkedId: 'u', email: EMAIL, tag: { a: { b: [1, 'x'] } }, userAgent: CHROME }),
  )
  const statuses: Record<number, number> = {}
  await forEach(Array.from({ length: SIZE.mutations }), async () => {
    const raw = mutate(valid, random)
    const { answer, wrong } = await fault(() => send('POST', '/v1/identify', { key, raw }))
    if (wrong !== null) t.fail(`${Buffer.from(raw).toString('base64')}: ${wrong}`)
    const status = answer?.status ?? 0
    statuses[status] = (statuses[status] ?? 0) + 1
    if (status === 200) accepted.push({ requestId: answer?.body.requestId, says: {} })
  })
  t.comment(statuses)
  const [fine = 0, refused = 0] = [statuses[200], statuses[400]]
  t.ok(Math.min(fine, refused) > SIZE.mutations / 20, `${fine} accepted, ${refused} refused`)
  await stillServes(t)
})

t.test('every hostile text in addresses, queries and headers', async (t) => {
  const params = [
    'before',
    'after',
    'verdict',
    'bot',
    'limit',
    'cursor',
    'visitorId',
    'linkedId',
    'country',
    'platform',
    'ruleId',
    'signal',
  ]
  const headers = [
    'Content-Type',
    'Origin',
    'X-Forwarded-For',
    'User-Agent',
    'Accept-Language',
    'Sec-CH-UA',
    'Via',
    'If-None-Match',
  ]
  const known = accepted[0]?.requestId
  let asked = 0
  await forEach(drawnElsewhere, async (text) => {
    // Longer heads are dropped by the server before anything of ours sees them.
    const encoded = encodeURIComponent(text.toWellFormed()).slice(0, 1_500).replace(/%.?$/, '')
    const bytes = Buffer.from(text).toString('latin1').slice(0, 1_500)
    const paths = [
      `/v1/events?${random.pick(params)}=${encoded}`,
      `/v1/events?${encoded}=1`,
      `/v1/events?${random.pick(params)}=${encoded}&${random.pick(params)}=${encoded}`,
      `/v1/events/${encoded}`,
      `/v1/visitors/${encoded}`,
      `/v1/visitors/${encoded}/events`,
      `/v1/events/${known}?${encoded}`,
      `/${encoded}`,
    ]
    const calls = paths.map((path) => () => get(path, key))
    if (/^[\t\x20-\x7e\x80-\xff]*$/.test(bytes)) {
      const header = random.pick(headers)
      calls.push(() => send('POST', '/v1/identify', { key, raw: '{}', headers: { [header]: bytes } }))
      calls.push(() => send('GET', '/v1/events?limit=1', { key, headers: { [header]: bytes } }))
      if (asked % 8 === 0) calls.push(() => send('GET', '/v1/events', { key: null, headers: { Authorization: bytes } }))
    }
    for (const call of random.shuffle(calls).slice(0, SIZE.placesOfText)) {
      asked++
      const { wrong } = await fault(call)
      if (wrong !== null) t.fail(`${show(text)}: ${wrong}`)
    }
  })
  t.equal(asked, drawnElsewhere.length * SIZE.placesOfText)
  await stillServes(t)
})

t.test('what was accepted can be read back as it was sent, by id and in the list', async (t) => {
  t.ok(accepted.length > drawn.length * 1.2, `${accepted.length} events`)
  const missing = new Set(accepted.map(({ requestId }) => requestId))
  const list = async () => {
    let cursor = ''
    do {
      const { body } = await get(`/v1/events?limit=100${cursor}`, key)
      for (const { requestId } of body.data) missing.delete(requestId)
      cursor = body.hasMore ? `&cursor=${body.nextCursor}` : ''
    } while (cursor !== '' && missing.size > 0)
    return missing.size
  }
  t.equal(await eventually(list, (left) => left === 0), 0, 'the list has every one of them')
  // Now that ClickHouse has them the memory does not any more: these come from there.
  const telling = random.shuffle(accepted.filter(({ says }) => 'tag' in says)).slice(0, SIZE.readBack)
  await forEach([...telling, ...random.shuffle(accepted).slice(0, SIZE.readBack / 5)], async ({ requestId, says }) => {
    const { status, body } = await get(`/v1/events/${requestId}`, key)
    const faults = status === 200 ? shapes.event(body) : [`${status}`]
    if (faults.length > 0) t.fail(`${requestId}: ${faults}`)
    for (const [name, value] of Object.entries(says)) t.same(body?.[name], wellFormed(value), `${name} of ${requestId}`)
    if (body?.evaluationError !== undefined) t.fail(`${requestId} could not be decided`)
  })
})

t.test('nobody changed what all objects have', async (t) => {
  const asPublic = await identify({ tag: {} }, { key: keys.testPublic })
  t.same(shapes.publicResult(asPublic.body), [], 'no polluted setting shows')
  t.same((await get('/v1/events?polluted=1', key)).status, 400)
})

/** What only the owner of the whole server can ask. */
function ofTheWhole(server: Server): void {
  t.test('nothing was put aside', async (t) => {
    const { text } = await send('GET', '/metrics', { key: null })
    t.ok(metric(text, 'fingerpost_identifications_decided_total') >= accepted.length, 'the counters count')
    t.equal(metric(text, 'fingerpost_sink_quarantined_total'), 0)
    t.equal(metric(text, 'fingerpost_dead_letters_total'), 0)
  })

  t.test('the log has no key, no email and nothing a terminal would obey', async (t) => {
    t.equal(await server.stop(), 0)
    const logs = server.logs()
    t.match(logs, /s\*\*\*@hostile\.example/, 'the rule wrote')
    for (const secret of [...Object.values(keys), server.operatorToken]) t.notOk(logs.includes(secret), 'no key')
    t.notOk(logs.includes(EMAIL), 'no email')
    t.notOk(logs.includes(ADDRESS), 'no whole address')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
    const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.exec(logs)
    t.equal(raw, null, `no raw control character ${json(logs.slice((raw?.index ?? 40) - 40, (raw?.index ?? 0) + 40))}`)
    const broken = logs.split('\n').filter((line) => line.startsWith('{') && !isJson(line))
    t.same(broken, [], 'every record parses')
  })
}

if (own !== null) ofTheWhole(own.server)
