// Dashboards in deploy/grafana: Grafana's model, metrics that a server has, expressions that a Prometheus answers, and pictures of them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import t from 'tap'
import { browserBody, clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { startPrometheus } from '../helpers/prometheus.ts'
import { scrape } from '../helpers/scrape.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { DASHBOARD, UNITS } from './grafana-schema.ts'
import { unknownNames } from './names.ts'

t.teardown(cleanUp)

const root = new URL('../../../', import.meta.url)
const script = (name: string) => import(new URL(`.scripts/${name}`, root).href)
const { dashboards } = await script('make-dashboards.mjs')
const { drawDashboard, expressionOf } = await script('draw-dashboards.mjs')
const folder = fileURLToPath(new URL('deploy/grafana', root))

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
  readonly fieldConfig: { readonly defaults: { readonly unit: string } }
}
interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] }
  readonly templating: { readonly list: readonly { readonly name: string }[] }
  readonly panels: readonly Panel[]
}

const all = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name): Dashboard => JSON.parse(readFileSync(join(folder, name), 'utf8')))
const drawn = (dashboard: Dashboard) => dashboard.panels.filter(({ type }) => type !== 'row')
/** With what each is called in failures. */
const expressionsOf = (dashboard: Dashboard): (readonly [string, string])[] => [
  ...drawn(dashboard).flatMap(({ title, targets }) =>
    targets.map(({ expr }) => [`${dashboard.uid}: ${title}`, expr] as const),
  ),
  ...dashboard.annotations.list.map(({ name, expr }) => [`${dashboard.uid}: ${name}`, expr] as const),
]
const GRID_COLUMNS = 24
const CHOSEN = { job: 'fingerpost', instance: '.*' }

const server = await startServer()
const prometheus = await startPrometheus({ targets: [`127.0.0.1:${server.port}`] })
t.teardown(() => prometheus.stop())
const client = clientOf(server)
const visits = 5
for (let i = 0; i < visits; i++) await client.identify(browserBody())

t.test('the files are what `npm run dashboards` writes', (t) => {
  for (const [name, text] of dashboards()) t.equal(readFileSync(join(folder, name), 'utf8'), text, name)
  t.equal(all.length, dashboards().length)
  t.end()
})

t.test('each is a dashboard of Grafana’s model, no panel upon another', (t) => {
  const isDashboard = new Ajv({ allErrors: true }).compile(DASHBOARD)
  for (const dashboard of all) {
    t.ok(isDashboard(dashboard), `${dashboard.uid}: ${JSON.stringify(isDashboard.errors?.slice(0, 5))}`)
    t.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    )
    t.equal(new Set(cells).size, cells.length, dashboard.uid)
    t.notOk(cells.some((cell) => Number(cell.split(' ')[0]) >= GRID_COLUMNS))
    for (const { title, fieldConfig, description } of drawn(dashboard)) {
      t.ok(UNITS.has(fieldConfig.defaults.unit), `${title}: ${fieldConfig.defaults.unit}`)
      t.match(description, /\.$/, title)
    }
  }
  t.equal(new Set(all.map(({ uid }) => uid)).size, all.length)
  t.notOk(isDashboard({ ...all[0], panels: [{ title: 'nothing' }] }), 'it would be found')
  t.end()
})

t.test('every metric, label and variable that is named exists', async (t) => {
  const live = await scrape(server.url)
  const shown = new Set<string>()
  for (const dashboard of all) {
    const variables = new Set(dashboard.templating.list.map(({ name }) => name))
    for (const [what, expr] of expressionsOf(dashboard)) {
      t.same(unknownNames(expressionOf(expr, CHOSEN), live), [], what)
      for (const [, name = ''] of expr.matchAll(/\$(\w+)/g))
        t.ok(variables.has(name) || name === '__rate_interval', what)
      for (const [name] of expr.matchAll(/fingerpost_\w+/g)) shown.add(name.replace(/_(?:bucket|sum|count)$/, ''))
    }
    // A legend names labels by which its expression groups.
    for (const { title, targets } of drawn(dashboard)) {
      for (const { expr, legendFormat } of targets) {
        const isGrouped = /\bby \(/.test(expr)
        for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
          t.ok(!isGrouped || new RegExp(`by \\([^)]*\\b${label}\\b`).test(expr), `${title}: ${label}`)
        }
      }
    }
  }
  const own = [...live.types.keys()].filter((name) => name.startsWith('fingerpost_'))
  t.same(
    own.filter((name) => !shown.has(name)),
    [],
    'every metric of the product is on a dashboard',
  )
})

t.test('a Prometheus answers every expression, and each dashboard has a picture with its figures', async (t) => {
  const counted = 'fingerpost_identifications_decided_total'
  await until('a few scrapes', 60_000, async () => {
    const [one] = await prometheus.query(`count_over_time(up[1m]) and on () (sum(${counted}) == ${visits})`)
    return Number(one?.value[1]) > 3
  })
  const now = Date.now() / 1_000
  const span = { from: now - 30, to: now, stepSeconds: 1, rateSeconds: 15 }
  for (const dashboard of all) {
    const empty: string[] = []
    const range = async (expr: string) => {
      const series = await prometheus.range(expr, span.from, span.to, span.stepSeconds)
      if (series.length === 0) empty.push(expr)
      return series
    }
    const picture: string = await drawDashboard(dashboard, { range, chosen: CHOSEN, ...span })
    t.match(picture, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
    t.notMatch(picture, /NaN|undefined|Infinity/)
    for (const { title } of drawn(dashboard)) t.ok(picture.includes(`>${title.replace('&', '&amp;')}<`), title)
    t.ok(picture.includes('<polyline'), 'something is drawn')
    // What only errors, deliveries, other servers and data about addresses would show.
    const quiet = /> 0|5\.\.|result="failed"|dependency="|webhook_attempt|ip_source_age|ALERTS|== 0|propagation|backup/
    t.same(
      empty.filter((expr) => !quiet.test(expr)),
      [],
      `${dashboard.uid}: what a healthy server shows`,
    )
  }
})
