// SIGTERM: what was answered is durable, what was accepted is finished, and the process leaves by itself, in time.

import { Agent, request } from 'node:http'
import t from 'tap'
import { sized } from '../helpers/depth.ts'
import { childrenOf, isAlive, pause, until } from '../helpers/processes.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, type Launched, launchServer, startServer } from '../helpers/server.ts'
import { checkAll, checkById } from './checker.ts'
import { SERVER_ENV } from './embedded.ts'
import { openLedger } from './ledger.ts'
import { openLoad } from './load.ts'
import { createRules, quiet } from './quiet.ts'

/** Of a process that is told to leave. */
const EXIT_MS_MAX = 120_000
/** After the engine was spawned. */
const STARTING_MS = sized({ usual: [0, 600], long: [0, 300, 900] })
const SIZE = sized({ usual: { connections: 6, answersMin: 100 }, long: { connections: 12, answersMin: 500 } })

t.setTimeout(400_000)
t.teardown(cleanUp)

/** The exit code. */
async function leaves({ exited }: Pick<Launched, 'exited'>): Promise<number | null> {
  let code: number | null | undefined
  void exited.then((its) => {
    code = its
  })
  await until('the process leaves', EXIT_MS_MAX, () => code !== undefined)
  return code ?? null
}

t.test('a drain under load loses nothing it answered, and signals more or early change nothing', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const env = SERVER_ENV
  const first = await startServer({ env })
  const { url, keys, dataDir, port } = first
  const ledger = openLedger()
  const load = openLoad({ random: rng(seed), ledger, keys, url, connections: SIZE.connections })
  t.teardown(() => load.close())
  await createRules(load, first)

  const stopped = new AbortController()
  const running = load.run(stopped.signal)
  await until('a load', 60_000, () => ledger.counts.answered >= SIZE.answersMin)
  const children = childrenOf(first.pid)
  const from = performance.now()
  first.signal('SIGTERM')
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGTERM'] as const) {
    await pause(20)
    first.signal(signal)
  }
  t.equal(await leaves(first), 0, 'exit code 0')
  const tookMs = Math.round(performance.now() - from)
  stopped.abort()
  await running
  t.comment(`left after ${tookMs} ms, ${ledger.counts.answered} answered, ${ledger.counts.unknown} unknown`)
  await until('its engine is gone', 60_000, () => !children.some(isAlive))
  t.notMatch(first.logs(), /"level":(50|60)/, 'no error was logged')

  ledger.nextEpoch()
  // Signals that come before a start is over: the folder is none the worse.
  for (const ms of STARTING_MS) {
    const launched = await launchServer({ env, dataDir, keys, port })
    await until('it starts its engine', 60_000, () => childrenOf(launched.pid).length > 0)
    await pause(ms)
    launched.signal('SIGTERM')
    t.equal(await leaves(launched), 0, `a stop before the start is over is a stop, ${ms} ms after its engine began`)
  }
  const second = await startServer({ env, dataDir, keys, port })
  await load.settle(90_000)
  await quiet(load, [second], 4)
  const to = { agent: load.agent, url, secret: keys.secret, ledger }
  const answered = ledger.attempts.filter(({ answer }) => answer !== null)
  t.equal(await checkById(to, answered), null, 'every answer can be read')
  const { violation, listed } = await checkAll(to)
  t.equal(violation, null)
  t.equal(listed, ledger.attempts.filter(({ answer }) => answer !== null).length, 'nothing else is listed')
  t.equal(await second.stop(), 0)
})

t.test('a stop answers the requests of the API that it has taken, each as the last of its connection', async (t) => {
  const first = await startServer({ env: { ...SERVER_ENV, FINGERPOST_HTTP_LINGER_MS: '300' } })
  const { url, keys, dataDir, port } = first
  const headers = { authorization: `Bearer ${keys.secret}`, 'content-type': 'application/json' }
  const rule = { action: { verdict: 'block' }, conditions: { field: 'ip', operator: 'equals', value: '203.0.113.9' } }
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const answered = new Set<string>()
  const closing: boolean[] = []
  function make(name: string): Promise<boolean> {
    return new Promise((resolve) => {
      const call = request(`${url}/v1/rules`, { method: 'POST', agent, headers }, (response) => {
        if (response.statusCode === 201) answered.add(name)
        closing.push(response.headers.connection === 'close')
        response.resume().on('end', () => resolve(true))
      })
      call.on('error', () => resolve(false))
      call.end(JSON.stringify({ ...rule, conditions: { operator: 'AND', rules: [rule.conditions] }, name }))
    })
  }
  let isStopping = false
  const worker = async (n: number): Promise<void> => {
    for (let at = 0; ; at++) if (!(await make(`rule ${n} ${at}`)) && isStopping) return
  }
  const working = Promise.all([0, 1, 2, 3].map(worker))
  await until('rules are made', 60_000, () => answered.size > 20)
  isStopping = true
  first.signal('SIGTERM')
  t.equal(await leaves(first), 0)
  await working
  t.ok(
    closing.some((closes) => closes),
    'clients that stay connected are told',
  )

  const second = await startServer({ env: SERVER_ENV, dataDir, keys, port })
  const stored = new Set<string>()
  for (let offset = 0; ; offset += 100) {
    const page = await fetch(`${url}/v1/rules?limit=100&offset=${offset}`, { headers })
    const { data } = (await page.json()) as { readonly data: readonly { readonly name: string }[] }
    for (const { name } of data) stored.add(name)
    if (data.length < 100) break
  }
  t.same(stored, answered, 'what was made was answered')
  t.equal(await second.stop(), 0)
})
