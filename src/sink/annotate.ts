// Brings what was said of events afterwards into ClickHouse: one statement for all that a range says of an environment.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import type { Env } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { tagText } from '../events/cells.ts'
import { MOMENTS, momentText } from '../events/moments.ts'
import { EVENTS_TABLE } from '../events/row.ts'
import type { AnnotatedChanges, Annotation } from '../records/annotations.ts'

const EVENTS_PER_STATEMENT_MAX = 1_000
/** Of values as they stand in an address, which takes a megabyte in all. */
const VALUE_BYTES_PER_STATEMENT_MAX = 200_000

type Tenant = Pick<Annotation, 'workspace' | 'env'> & { readonly events: Map<string, AnnotatedChanges> }

interface Field {
  readonly set: string
  readonly read: (changes: AnnotatedChanges) => string | undefined
}
const FIELDS: readonly Field[] = [
  field('linked_id', ({ linkedId }) => (linkedId === undefined ? undefined : (linkedId ?? ''))),
  field('tag', ({ tag }) => (tag === undefined ? undefined : tagText(tag))),
  field('label', ({ label }) => (label === undefined ? undefined : (label ?? 'none'))),
]

function field(column: string, read: Field['read']): Field {
  return { set: `${column} = {values:Array(String)}[indexOf({ids:Array(String)}, request_id)]`, read }
}

/** Resolves when every query shows them. In the order of the log; what names no row does nothing. Twice equals once. */
export async function annotateRows(
  clickhouse: Pick<ClickHouse, 'patch'>,
  annotations: readonly Annotation[],
): Promise<void> {
  for (const tenant of byTenant(annotations)) {
    for (const { set, read } of FIELDS) {
      const changed = [...tenant.events].flatMap(([id, changes]) => {
        const value = read(changes)
        return value === undefined ? [] : [{ id, value }]
      })
      for (const some of statementsOf(changed)) await update(clickhouse, tenant, set, some)
    }
  }
}

/** As many as one statement takes. */
function* statementsOf<T extends { readonly value: string }>(changed: readonly T[]): Generator<readonly T[]> {
  let some: T[] = []
  let bytes = 0
  for (const one of changed) {
    const own = encodeURIComponent(one.value.toWellFormed()).length
    if (some.length === EVENTS_PER_STATEMENT_MAX || (some.length > 0 && bytes + own > VALUE_BYTES_PER_STATEMENT_MAX)) {
      yield some
      some = []
      bytes = 0
    }
    some.push(one)
    bytes += own
  }
  if (some.length > 0) yield some
}

/** The last word on each field of an event. */
function byTenant(annotations: readonly Annotation[]): Iterable<Tenant> {
  const tenants = new Map<string, Tenant>()
  for (const { workspace, env, requestId, changes } of annotations) {
    const name = `${workspace}/${env}`
    const tenant = tenants.get(name) ?? { workspace, env, events: new Map() }
    tenants.set(name, tenant)
    tenant.events.set(requestId, { ...tenant.events.get(requestId), ...changes })
  }
  return tenants.values()
}

/** A patch, which is seen in milliseconds, where a mutation rewrites the parts the rows are in. */
async function update(
  clickhouse: Pick<ClickHouse, 'patch'>,
  { workspace, env }: { readonly workspace: string; readonly env: Env },
  set: string,
  changed: readonly { readonly id: string; readonly value: string }[],
): Promise<void> {
  await clickhouse.patch(
    EVENTS_TABLE,
    `UPDATE ${EVENTS_TABLE} SET ${set}
     WHERE workspace_id = {workspace:String} AND env = {env:String}
       AND ts IN ${MOMENTS} AND request_id IN {ids:Array(String)}`,
    {
      workspace,
      env,
      times: changed.map(({ id }) => momentText(requestTime(id) ?? 0)),
      ids: changed.map(({ id }) => id),
      values: changed.map(({ value }) => value),
    },
  )
}
