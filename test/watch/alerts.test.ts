// Alerts and runbooks in deploy/prometheus: every name in them is measured, each fires when it should and not before, and each says what
// to do in words that exist.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { SETTINGS } from '../../src/settings.ts'
import { runProgram } from '../helpers/child.ts'
import { browserBody, clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { startPrometheus } from '../helpers/prometheus.ts'
import { groupingOf, selectorsOf } from '../helpers/promql.ts'
import { scrape } from '../helpers/scrape.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import { ALERT_CASES, unitTests } from './alerts.ts'
import { unknownNames } from './names.ts'

t.teardown(cleanUp)

const folder = fileURLToPath(new URL('../../../deploy/prometheus', import.meta.url))
const rulesFile = join(folder, 'alerts.yml')
const runbooks = readFileSync(join(folder, 'RUNBOOKS.md'), 'utf8')

const promtool = (...args: string[]) => runProgram('promtool', args, {})

const server = await startServer()
const prometheus = await startPrometheus({ targets: [`127.0.0.1:${server.port}`], rulesFile })
t.teardown(() => prometheus.stop())
// What nobody has asked for has no durations yet.
await clientOf(server).identify(browserBody())
const rules = await prometheus.rules()
const alerts = rules.filter(({ type }) => type === 'alerting')

t.test('promtool accepts rules and configuration', async (t) => {
  for (const args of [
    ['check', 'rules', rulesFile],
    ['check', 'config', join(folder, 'prometheus.yml')],
    ['check', 'config', join(folder, 'compose.yml')],
  ]) {
    const { code, said } = await promtool(...args)
    t.equal(code, 0, said)
  }
})

t.test('every metric, label and value that a rule names is measured by a server', async (t) => {
  const live = await scrape(server.url)
  t.ok(alerts.length >= 30)
  for (const { name, query } of rules) t.same(unknownNames(query, live), [], name)
  t.ok(selectorsOf('rate(fingerpost_nothing_total[5m])').length === 1 && groupingOf('sum by (a, b) (x)').length === 2)
  t.same(unknownNames('rate(fingerpost_nothing_total[5m])', live), ['fingerpost_nothing_total'], 'it would be found')
})

t.test('every alert fires when it should and is quiet when it is close to that', async (t) => {
  t.same(alerts.map(({ name }) => name).sort(), Object.keys(ALERT_CASES).sort(), 'each has its cases')
  const file = join(temporaryFolder(), 'tests.yml')
  writeFileSync(file, JSON.stringify(unitTests(rulesFile)))
  const { code, said } = await promtool('test', 'rules', file)
  t.equal(code, 0, said.slice(0, 4_000))
})

t.test('every alert has a severity, a sentence, and a runbook with meaning, causes and steps', async (t) => {
  const sections = new Map(
    runbooks
      .split(/^## /m)
      .slice(1)
      .map((text) => [text.slice(0, text.indexOf('\n')), text]),
  )
  t.same([...sections.keys()].sort(), alerts.map(({ name }) => name).sort())
  for (const { name, labels, annotations = {} } of alerts) {
    t.match(labels.severity, /^(?:page|ticket)$/, name)
    t.match(annotations.summary, /\.$/, name)
    t.equal(annotations.runbook, `deploy/prometheus/RUNBOOKS.md#${name.toLowerCase()}`)
    for (const part of ['What it means.', 'What to look at.', 'What to do.']) {
      t.match(sections.get(name), new RegExp(`\\*\\*${part}\\*\\* .{20}`), `${name}: ${part}`)
    }
  }
})

t.test('runbooks name settings, metrics, alerts and endpoints that exist', async (t) => {
  const live = await scrape(server.url)
  const known = new Set<string>(SETTINGS.map(({ name }) => name))
  const groups = new Set([...known].map((name) => name.split('.')[0]))
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: Record<string, object> }
  const anyId = (path: string) => path.replace(/\{\w+\}/g, '{}')
  const endpoints = new Set(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${anyId(path)}`),
    ),
  )
  for (const [, code = ''] of runbooks.matchAll(/`([^`]+)`/g)) {
    const [, group = ''] = /^(\w+)\.\w+$/.exec(code) ?? []
    if (groups.has(group) && !/\.(?:yml|md|key)$/.test(code)) t.ok(known.has(code), code)
    if (code.startsWith('fingerpost_')) t.ok(live.types.has(code.replace(/\{.*/, '')), code)
    if (/^[A-Z]+ \/v1\//.test(code)) t.ok(endpoints.has(anyId(code)), code)
  }
  const names = new Set(alerts.map(({ name }) => name))
  for (const [word] of runbooks.matchAll(/\bFingerpost[A-Z]\w+/g)) t.ok(names.has(word), word)
})

t.test('a healthy server makes no alert fire', async (t) => {
  // Everything was scraped and looked at more than once.
  await until(
    'a few scrapes',
    60_000,
    async () => Number((await prometheus.query('count_over_time(up[1m])'))[0]?.value[1]) > 2,
  )
  const now = await prometheus.rules()
  t.same(
    now.filter(({ state }) => state === 'firing').map(({ name }) => name),
    [],
  )
  t.same(
    now.filter(({ health }) => health === 'err').map(({ name, lastError }) => `${name}: ${lastError}`),
    [],
  )
})
