// What panels are made of: expressions over the processes that a dashboard has chosen, and panels in rows as Grafana's model has them.

/** A metric of the chosen processes; `matchers` as in `code=~"5.."`. */
export const on = (name, matchers = '') =>
  `${name}{job="$job",instance=~"$instance"${matchers === '' ? '' : `,${matchers}`}}`
export const rate = (name, matchers) => `rate(${on(name, matchers)}[$__rate_interval])`
export const increase = (name, matchers) => `increase(${on(name, matchers)}[$__rate_interval])`

const by = (labels) => (labels === '' ? '' : ` by (${labels})`)
export const sum = (expression, labels = '') => `sum${by(labels)} (${expression})`
export const max = (expression, labels = '') => `max${by(labels)} (${expression})`
/** Of a histogram. */
export const quantile = (share, name, { labels = '', matchers = '' } = {}) =>
  `histogram_quantile(${share}, ${sum(rate(`${name}_bucket`, matchers), labels === '' ? 'le' : `le, ${labels}`)})`
/** Of a histogram: the mean. */
export const mean = (name, labels = '') => `${sum(rate(`${name}_sum`), labels)} / ${sum(rate(`${name}_count`), labels)}`

/** The quantiles that everybody asks for. */
export const quantiles = (name, options) =>
  [0.5, 0.9, 0.99].map((share) => [quantile(share, name, options), `p${share * 100}`])

/** `of`: pairs of expression and legend. `about`: what it tells, and what to do when it is bad. `alert`: where it turns red. */
const panel =
  (type, defaults) =>
  (title, { unit, about, of, alert = null, width = defaults.width, isStacked = false }) => ({
    ...{ type, title, unit, about, of, alert, width, isStacked },
    height: defaults.height,
  })
export const lines = panel('timeseries', { width: 12, height: 8 })
export const number = panel('stat', { width: 4, height: 4 })
export const row = (title) => ({ type: 'row', title, width: 24, height: 1 })

/** Grafana's grid has 24 columns; a panel that does not fit begins a new line. */
function* places(panels) {
  let [x, y, tallest] = [0, 0, 0]
  for (const { width, height } of panels) {
    if (x + width > 24) [x, y, tallest] = [0, y + tallest, 0]
    yield { h: height, w: width, x, y }
    x += width
    tallest = Math.max(tallest, height)
  }
}

const DATASOURCE = { type: 'prometheus', uid: '$datasource' }

const thresholds = (alert) => ({
  mode: 'absolute',
  steps: [{ color: 'green', value: null }, ...(alert === null ? [] : [{ color: 'red', value: alert }])],
})

const targetsOf = (of) =>
  of.map(([expr, legendFormat], at) => ({
    refId: String.fromCharCode(65 + at),
    datasource: DATASOURCE,
    expr,
    legendFormat,
  }))

function toPanel({ type, title, unit, about, of, alert, isStacked }, id, gridPos) {
  if (type === 'row') return { id, type, title, gridPos, collapsed: false, panels: [] }
  const isNumber = type === 'stat'
  const custom = {
    drawStyle: 'line',
    fillOpacity: isStacked ? 40 : 8,
    lineWidth: 1,
    showPoints: 'never',
    stacking: { mode: isStacked ? 'normal' : 'none', group: 'A' },
    thresholdsStyle: { mode: alert === null ? 'off' : 'line' },
  }
  return {
    id,
    type,
    title,
    description: about,
    gridPos,
    datasource: DATASOURCE,
    targets: targetsOf(of),
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: thresholds(alert),
        ...(isNumber ? {} : { color: { mode: 'palette-classic' }, custom }),
      },
      overrides: [],
    },
    options: isNumber
      ? { reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false }, colorMode: 'value', graphMode: 'area' }
      : {
          legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'], showLegend: true },
          tooltip: { mode: 'multi', sort: 'desc' },
        },
  }
}

const variable = (name, label, query, isMany) => ({
  type: 'query',
  name,
  label,
  datasource: DATASOURCE,
  query: { query, refId: name },
  definition: query,
  refresh: 2,
  sort: 1,
  multi: isMany,
  includeAll: isMany,
  ...(isMany ? { allValue: '.*', current: { text: 'All', value: '$__all' } } : {}),
})

/** A dashboard as Grafana imports it. */
export function toDashboard({ uid, title, about, panels }) {
  const grid = [...places(panels)]
  return {
    uid,
    title,
    description: about,
    tags: ['fingerpost'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    links: [
      {
        type: 'dashboards',
        title: 'Fingerpost',
        tags: ['fingerpost'],
        asDropdown: false,
        keepTime: true,
        includeVars: true,
      },
    ],
    annotations: {
      list: [
        {
          name: 'Alerts',
          datasource: DATASOURCE,
          enable: true,
          iconColor: 'red',
          expr: 'ALERTS{alertname=~"Fingerpost.+",alertstate="firing"}',
          titleFormat: '{{alertname}}',
        },
        {
          name: 'Starts',
          datasource: DATASOURCE,
          enable: true,
          iconColor: 'blue',
          expr: 'changes(process_start_time_seconds{job="$job",instance=~"$instance"}[1m]) > 0',
          titleFormat: '{{instance}} started',
        },
      ],
    },
    templating: {
      list: [
        { type: 'datasource', name: 'datasource', label: 'Data source', query: 'prometheus', refresh: 1 },
        variable('job', 'Job', 'label_values(fingerpost_build_info, job)', false),
        variable('instance', 'Process', 'label_values(fingerpost_build_info{job="$job"}, instance)', true),
      ],
    },
    panels: panels.map((one, at) => toPanel(one, at + 1, grid[at])),
  }
}
