// Holds the names in an expression against what a server says of itself.

import { groupingOf, selectorsOf } from '../helpers/promql.ts'
import type { Scrape } from '../helpers/scrape.ts'

/** What Prometheus adds by itself. */
const ADDED = ['job', 'instance']
/** Of its own series of alerts. */
const OF_ALERTS = ['alertname', 'severity']
/** Only servers of a cluster are called by these names. */
const CLUSTER_ONLY = new Set(['nats', 'redis'])

/** Metrics, labels and values of labels that are not there. Values of patterns are not looked at. */
export function unknownNames(expression: string, { samples }: Pick<Scrape, 'samples'>): string[] {
  const labels = new Set([...ADDED, ...(/\bALERTS\b/.test(expression) ? OF_ALERTS : [])])
  const unknown: string[] = []
  for (const { name, matchers } of selectorsOf(expression)) {
    const of = samples.filter((sample) => sample.name === name)
    if (name !== 'up' && of.length === 0 && !CONDITIONAL.has(name)) unknown.push(name)
    for (const sample of of) for (const label of Object.keys(sample.labels)) labels.add(label)
    for (const label of CONDITIONAL.get(name) ?? []) labels.add(label)
    for (const { label, operator, value } of matchers) {
      if (!labels.has(label)) unknown.push(`${name}{${label}}`)
      else if (operator === '=' && !ADDED.includes(label) && !of.some((one) => one.labels[label] === value)) {
        if (!CLUSTER_ONLY.has(value)) unknown.push(`${name}{${label}="${value}"}`)
      }
    }
  }
  for (const label of groupingOf(expression)) if (!labels.has(label)) unknown.push(label)
  return unknown
}

/** Absent where nobody knows: each with its labels. */
const CONDITIONAL: ReadonlyMap<string, readonly string[]> = new Map([['fingerpost_ip_source_age_seconds', ['source']]])
