// The part of Grafana's dashboard model (schema version 39) that our dashboards use, closed: a member that is misspelt is refused.

const object = (properties: Record<string, object>, optional: readonly string[] = []) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
})
const text = { type: 'string', minLength: 1 }
const whole = { type: 'integer', minimum: 0 }
const flag = { type: 'boolean' }
const oneOf = (...values: readonly (string | number)[]) => ({ enum: values })
const list = (items: object, minItems = 1) => ({ type: 'array', items, minItems })

/** Of Grafana's list of units, those that are used. */
export const UNITS = new Set(['none', 's', 'bytes', 'percentunit', 'reqps', 'cps', 'rowsps'])

const datasource = object({ type: oneOf('prometheus'), uid: oneOf('$datasource') })
const gridPos = object({
  h: { type: 'integer', minimum: 1, maximum: 20 },
  w: { type: 'integer', minimum: 1, maximum: 24 },
  x: { type: 'integer', minimum: 0, maximum: 23 },
  y: whole,
})

const row = object({ id: whole, type: oneOf('row'), title: text, gridPos, collapsed: flag, panels: { maxItems: 0 } })

const defaults = object(
  {
    unit: text,
    min: { type: 'number' },
    thresholds: object({
      mode: oneOf('absolute', 'percentage'),
      steps: list(object({ color: text, value: { type: ['number', 'null'] } })),
    }),
    color: object({ mode: oneOf('palette-classic', 'thresholds') }),
    custom: object({
      drawStyle: oneOf('line', 'bars', 'points'),
      fillOpacity: { type: 'integer', minimum: 0, maximum: 100 },
      lineWidth: whole,
      showPoints: oneOf('auto', 'never', 'always'),
      stacking: object({ mode: oneOf('none', 'normal', 'percent'), group: text }),
      thresholdsStyle: object({ mode: oneOf('off', 'line', 'area') }),
    }),
  },
  ['color', 'custom'],
)

const panel = (type: string, options: object) =>
  object({
    id: whole,
    type: oneOf(type),
    title: text,
    description: text,
    gridPos,
    datasource,
    targets: list(
      object({ refId: { type: 'string', pattern: '^[A-Z]$' }, datasource, expr: text, legendFormat: text }),
    ),
    fieldConfig: object({ defaults, overrides: { maxItems: 0 } }),
    options,
  })

const stat = panel(
  'stat',
  object({
    reduceOptions: object({ calcs: list(oneOf('lastNotNull')), fields: { type: 'string' }, values: flag }),
    colorMode: oneOf('none', 'value', 'background'),
    graphMode: oneOf('none', 'area'),
  }),
)
const timeseries = panel(
  'timeseries',
  object({
    legend: object({
      displayMode: oneOf('list', 'table', 'hidden'),
      placement: oneOf('bottom', 'right'),
      calcs: list(oneOf('lastNotNull', 'max', 'mean')),
      showLegend: flag,
    }),
    tooltip: object({ mode: oneOf('single', 'multi', 'none'), sort: oneOf('none', 'asc', 'desc') }),
  }),
)

const ofDatasource = object({
  type: oneOf('datasource'),
  name: text,
  label: text,
  query: oneOf('prometheus'),
  refresh: oneOf(0, 1, 2),
})
const ofQuery = object(
  {
    type: oneOf('query'),
    name: text,
    label: text,
    datasource,
    query: object({ query: text, refId: text }),
    definition: text,
    refresh: oneOf(0, 1, 2),
    sort: whole,
    multi: flag,
    includeAll: flag,
    allValue: text,
    current: object({ text, value: text }),
  },
  ['allValue', 'current'],
)

export const DASHBOARD = object({
  uid: { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,40}$' },
  title: text,
  description: text,
  tags: list(text),
  schemaVersion: oneOf(39),
  version: whole,
  editable: flag,
  graphTooltip: oneOf(0, 1, 2),
  refresh: { type: 'string', pattern: '^\\d+[smh]$' },
  time: object({ from: text, to: text }),
  timezone: oneOf('browser', 'utc'),
  links: list(
    object({
      type: oneOf('dashboards'),
      title: text,
      tags: list(text),
      asDropdown: flag,
      keepTime: flag,
      includeVars: flag,
    }),
  ),
  annotations: object({
    list: list(object({ name: text, datasource, enable: flag, iconColor: text, expr: text, titleFormat: text })),
  }),
  templating: object({ list: list({ anyOf: [ofDatasource, ofQuery] }) }),
  panels: list({ anyOf: [row, stat, timeseries] }),
})
