// Requests to one endpoint, made from the document: such that it allows, and such that it must refuse.

import fc, { type Arbitrary } from 'fast-check'
import type { Endpoint, Parameter, Schema } from '../../src/api/reference/openapi.ts'
import { paramsOf } from './endpoints.ts'
import { faulty, type Known, type Schemas, valid, wrongValues } from './schema-arbitrary.ts'

/** Where the id of a path comes from; resolved when the request is sent. */
export type IdSource = 'known' | 'spare' | 'unknown' | 'malformed'

export interface Drawn {
  readonly ids: Readonly<Record<string, IdSource>>
  /** Names and texts, as they go into the query. */
  readonly query: readonly (readonly [name: string, text: string])[]
  readonly body?: unknown
  /** Sent as it is instead of `body`. */
  readonly raw?: string
}
export interface DrawnFaulty extends Drawn {
  /** What the answer's `field` must begin with; null: the body does not parse. */
  readonly head: string | null
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
const isQuery = ({ in: place }: Parameter) => place === 'query'
/** What only the server can make. */
const OURS: readonly string[] = ['cursor', 'key']

function queryOf({ operation }: Endpoint, schemas: Schemas, known: Known): Arbitrary<Drawn['query']> {
  const parameters = (operation.parameters ?? []).filter((one) => isQuery(one) && !OURS.includes(one.name))
  const members = Object.fromEntries(parameters.map(({ name, schema }) => [name, plain(valid(schema, schemas, known))]))
  const exploded = new Set(parameters.filter(({ explode }) => explode === true).map(({ name }) => name))
  const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name)
  return fc.record(members, { requiredKeys }).map((values) => {
    const query = Object.entries(values).flatMap(([name, value]) =>
      exploded.has(name)
        ? Object.entries(value as object).map(([member, text]) => [member, textOf(text)] as const)
        : [[name, textOf(value)] as const],
    )
    return inOrder(query)
  })
}

/** Numbers are written plainly in queries: no exponents. */
const plain = (values: Arbitrary<unknown>): Arbitrary<unknown> =>
  values.map((value) => (typeof value === 'number' ? Number(value.toFixed(3)) : value))

const DAY_MS = 86_400_000
/** A range has to end after it begins, and within ninety days: no schema can say so. */
function inOrder(query: Drawn['query']): Drawn['query'] {
  const from = query.find(([name]) => name === 'from')?.[1]
  if (from === undefined) return query
  const to = new Date(new Date(from).getTime() + DAY_MS * (1 + (query.length % 80))).toISOString()
  return query.map(([name, value]) => [name, name === 'to' ? to : value] as const)
}

export const bodySchema = ({ operation }: Endpoint): Schema | undefined =>
  operation.requestBody?.content['application/json']?.schema

const idsFrom = (endpoint: Endpoint, source: Arbitrary<IdSource>): Arbitrary<Drawn['ids']> =>
  fc.record(Object.fromEntries(paramsOf(endpoint).map((name) => [name, source])))

/** Objects that others need are never deleted. */
const sourcesOf = ({ method }: Endpoint): Arbitrary<IdSource> =>
  method === 'DELETE'
    ? fc.constantFrom('spare', 'unknown', 'malformed')
    : fc.oneof(
        { weight: 6, arbitrary: fc.constant<IdSource>('known') },
        fc.constantFrom('spare', 'unknown', 'malformed'),
      )

export function validRequests(endpoint: Endpoint, schemas: Schemas, known: Known): Arbitrary<Drawn> {
  const body = bodySchema(endpoint)
  return fc
    .record({
      ids: idsFrom(endpoint, sourcesOf(endpoint)),
      query: queryOf(endpoint, schemas, known),
      ...(body === undefined ? {} : { body: valid(body, schemas, known) }),
    })
    .map((drawn) => drawn as Drawn)
}

const NO_JSON = [
  '{',
  '',
  '{"a":1}}',
  "{'a':1}",
  '{"a":NaN}',
  '\ufeff{}',
  `${'['.repeat(40)}${']'.repeat(40)}`,
  '{"a":"\\ud800"}',
]

export function invalidRequests(endpoint: Endpoint, schemas: Schemas, known: Known): Arbitrary<DrawnFaulty> {
  const ids = idsFrom(endpoint, fc.constant<IdSource>(endpoint.method === 'DELETE' ? 'unknown' : 'known'))
  const query = queryOf(endpoint, schemas, known)
  const body = bodySchema(endpoint)
  const good = body === undefined ? fc.constant(undefined) : valid(body, schemas, known)
  const withFault = (faults: Arbitrary<(query: Drawn['query']) => Pick<DrawnFaulty, 'query' | 'head'>>) =>
    fc.tuple(ids, query, good, faults).map(([ids, query, value, spoil]) => ({
      ids,
      ...spoil(query),
      ...(body === undefined ? {} : { body: value }),
    }))
  const kinds: Arbitrary<DrawnFaulty>[] = [
    withFault(
      fc.stringMatching(/^[a-z]{9,12}$/).map((name) => (query) => ({ query: [...query, [name, '1']], head: name })),
    ),
  ]
  for (const { name, schema, explode } of (endpoint.operation.parameters ?? []).filter(isQuery)) {
    // Its members have names that differ from request to request.
    if (explode === true) continue
    // A key in the query is not looked at beside the header.
    if (name === 'key') continue
    const wrong = [...wrongTexts(schema, schemas), ...(name === 'cursor' ? ['AAAA', 'ü'] : [])]
    if (wrong.length === 0) continue
    const spoil = (text: string) => (query: Drawn['query']) => ({
      query: [...query.filter(([other]) => other !== name), [name, text] as const],
      head: name,
    })
    kinds.push(withFault(fc.constantFrom(...wrong).map(spoil)))
  }
  if (body !== undefined) {
    const spoiled = fc.tuple(ids, query, faulty(body, schemas, known))
    kinds.push(spoiled.map(([ids, query, { value, head }]) => ({ ids, query, body: value, head })))
    kinds.push(spoiled.map(([ids, query, { value, head }]) => ({ ids, query, body: value, head })))
    // A POST without a body is one of an empty object.
    const may = endpoint.operation.requestBody?.required === false || endpoint.method === 'POST'
    // Identify replaces halves of surrogate pairs, so that no visit is lost for them.
    const isStrict = endpoint.operation.operationId !== 'identify'
    const texts = (may ? NO_JSON.filter((text) => text !== '') : NO_JSON).filter(
      (text) => isStrict || !text.includes('ud800'),
    )
    kinds.push(fc.tuple(ids, fc.constantFrom(...texts)).map(([ids, raw]) => ({ ids, query: [], raw, head: null })))
  }
  return fc.oneof(...kinds)
}

/** What a query parameter may not be; all is text there, so only what it says can be wrong. */
function wrongTexts(schema: Schema, schemas: Schemas): string[] {
  if (schema.format === 'date-time') return ['yesterday', '2026-13-01T00:00:00Z', '2026-11-20', '1']
  const isText = schema.type === 'string'
  const wrong = wrongValues(schema, schemas).filter((value) => !isText || typeof value === 'string')
  const texts = isText ? wrong.filter((value) => value !== 'some text' || schema.enum !== undefined) : wrong
  return texts.map(textOf).filter((text) => !(schema.type === 'boolean' && /^(?:true|false)$/.test(text)))
}
