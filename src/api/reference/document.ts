// The OpenAPI 3.1 document, made from the route table: what validates requests is what it shows.

import { ERRORS, type ErrorCode } from '../../domain/errors.ts'
import type { AnswerDoc, Fragment } from '../describe.ts'
import { mayLackBody } from '../routes.ts'
import { type NamedSchemas, openNamedSchemas } from './named-schemas.ts'
import {
  type MediaType,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  type Response,
  refTo,
  refToResponse,
  type Schema,
} from './openapi.ts'
import type { DescribedRow } from './outside.ts'
import { refusalsOf, WHEN } from './refusals.ts'
import { WEBHOOK_EVENTS } from './webhook-events.ts'
import { HEADER_PARAMETERS, HEADERS, INTRODUCTION, PATH_PARAMETERS, SECURITY, TAGS, tagOf } from './words.ts'

const JSON_TYPE = 'application/json'
const LIMITED = /^\/v1\/(?!identify|meta)/
const LIMIT_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']
const RETRIED: readonly number[] = [429, 503]

const Problem = {
  type: 'object',
  description: 'What every refusal is.',
  required: ['error'],
  additionalProperties: false,
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      additionalProperties: false,
      properties: {
        code: { type: 'string', enum: Object.keys(ERRORS), description: 'Stable: decide by it.' },
        message: { type: 'string', description: 'For people; may change.' },
        docs: { type: 'string', description: 'Where the reference on the same host says when this code comes.' },
        field: { type: 'string', description: 'The parameter at fault, a dotted path with indexes.' },
        retryAfter: { type: 'integer', minimum: 1, description: 'Seconds to wait, as in Retry-After.' },
      },
    },
  },
  'x-shared': 'Error',
}

/** Throws when two rows have one id, or two shared schemas one name. */
export function openApiDocument(rows: readonly DescribedRow[], version: string): OpenApiDocument {
  const schemas = openNamedSchemas()
  schemas.place(Problem)
  const responses: Record<string, Response> = {}
  const paths: Record<string, Record<string, Operation>> = {}
  const ids = new Set<string>()
  for (const row of rows) {
    const path = row.path.replaceAll(/:(\w+)/g, '{$1}')
    const operation = operationOf(row, schemas, responses)
    if (ids.has(operation.operationId)) throw new Error(`two endpoints are called ${operation.operationId}`)
    ids.add(operation.operationId)
    paths[path] ??= {}
    const item = paths[path]
    item[row.method.toLowerCase()] = operation
  }
  const used = new Set(rows.map(({ path }) => tagOf(path)))
  const webhooks = Object.fromEntries(
    WEBHOOK_EVENTS.map((event) => [event.type, { post: webhookOperation(event, schemas) }]),
  )
  return {
    openapi: '3.1.1',
    info: {
      title: 'Fingerpost',
      version,
      description: INTRODUCTION,
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set([...Object.keys(TAGS), ...used])]
      .filter((name) => used.has(name))
      .map((name) => ({ name, description: TAGS[name] ?? '' })),
    paths,
    webhooks,
    components: {
      schemas: schemas.all(),
      responses,
      headers: Object.fromEntries(
        Object.entries(HEADERS).map(([name, [description, type]]) => [name, { description, schema: { type } }]),
      ),
      securitySchemes: SECURITY,
    },
  }
}

function operationOf(row: DescribedRow, schemas: NamedSchemas, shared: Record<string, Response>): Operation {
  const { method, path, doc } = row
  const parameters = parametersOf(row, schemas)
  const requestBody = requestBodyOf(row, schemas)
  const limited = row.access !== 'none' && LIMITED.test(path) ? LIMIT_HEADERS : []
  const responses: Record<string, Response | { readonly $ref: string }> = {}
  for (const [status, answer] of Object.entries(doc?.answers ?? {})) {
    const replayed = row.once === undefined ? [] : ['Idempotent-Replayed']
    responses[status] = answerOf(answer, [...limited, ...replayed], schemas)
  }
  for (const [status, codes] of byStatus(refusalsOf(row))) {
    const name = `${codes.join('-')}${limited.length > 0 ? '-limited' : ''}`
    shared[name] ??= refusal(status, codes, limited)
    // An answer of its own goes before what all endpoints have in common.
    responses[status] ??= refToResponse(name)
  }
  return {
    operationId: doc?.id ?? `${method}${path}`.replace(/[^A-Za-z0-9]+/g, '_'),
    summary: doc?.summary ?? `${method} ${path}`,
    ...(doc?.description === undefined ? {} : { description: doc.description }),
    tags: [tagOf(path)],
    security: securityOf(row),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === null ? {} : { requestBody }),
    responses,
    ...(doc === undefined ? { 'x-undescribed': true } : {}),
  }
}

function securityOf({ access, isForBrowsers = false }: DescribedRow): Operation['security'] {
  if (access === 'none') return []
  if (access === 'operator') return [{ operatorToken: [] }]
  const scopes = access === 'any-key' ? [] : [access]
  const ofBrowsers = [{ publicKey: [] }, { publicKeyInQuery: [] }]
  return [{ secretKey: scopes }, ...(isForBrowsers ? ofBrowsers : access === 'any-key' ? [{ publicKey: [] }] : [])]
}

type Properties = Readonly<Record<string, object>>
const propertiesOf = (schema: object | undefined): Properties =>
  (schema as { readonly properties?: Properties } | undefined)?.properties ?? {}
const requiredOf = (schema: object | undefined): readonly string[] =>
  (schema as { readonly required?: readonly string[] } | undefined)?.required ?? []

function parametersOf({ path, query, headers = [], once, doc }: DescribedRow, schemas: NamedSchemas): Parameter[] {
  const parameter = (name: string, place: Parameter['in'], required: boolean, schema: object): Parameter => {
    const { description, ...rest } = schema as Fragment
    return {
      name,
      in: place,
      required,
      ...(description === undefined ? {} : { description }),
      schema: schemas.place(rest),
    }
  }
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) =>
    parameter(name, 'path', true, { type: 'string', ...PATH_PARAMETERS[name], ...doc?.members?.[`:${name}`] }),
  )
  const inQuery = Object.entries(propertiesOf(query)).map(([name, schema]) => {
    const example = doc?.queryExample?.[name]
    const one = parameter(name, 'query', requiredOf(query).includes(name), { ...schema, ...doc?.members?.[name] })
    return example === undefined ? one : { ...one, example }
  })
  const inQueryByPattern = openParameters(query, doc)
  const inHeaders = [...headers, ...(once === undefined ? [] : ['idempotency-key'])].flatMap((header) => {
    const known = HEADER_PARAMETERS[header]
    if (known === undefined) return []
    const [name, description] = known
    return [parameter(name, 'header', false, { type: 'string', description, ...doc?.members?.[header] })]
  })
  return [...inPath, ...inQuery, ...inQueryByPattern, ...inHeaders]
}

/** Parameters that a pattern names, as one object whose members they are; `tag.<key>` among the members described is their name. */
function openParameters(query: object | undefined, doc: DescribedRow['doc']): Parameter[] {
  const { patternProperties } = (query ?? {}) as Pick<Schema, 'patternProperties'>
  if (patternProperties === undefined) return []
  const schema: Schema = { type: 'object', patternProperties, additionalProperties: false }
  return Object.entries(doc?.members ?? {})
    .filter(([name]) => name.includes('<'))
    .map(([name, member]) => ({
      name,
      in: 'query',
      required: false,
      description: (member as Fragment).description ?? '',
      schema,
      style: 'form',
      explode: true,
    }))
}

function requestBodyOf(row: DescribedRow, schemas: NamedSchemas): NonNullable<Operation['requestBody']> | null {
  const { body, query, csv, doc, isForBrowsers = false } = row
  if (body === undefined) return null
  const inQuery = propertiesOf(query)
  const properties = Object.fromEntries(
    Object.entries(propertiesOf(body)).map(([name, schema]) => [
      name,
      // A name that the query has as well is described there.
      Object.hasOwn(inQuery, name) ? schema : { ...schema, ...doc?.members?.[name] },
    ]),
  )
  const json: MediaType = {
    schema: schemas.place({ ...body, properties }),
    ...(doc?.bodyExample === undefined ? {} : { example: doc.bodyExample }),
  }
  return {
    required: !mayLackBody(row) || ((body as { readonly required?: readonly string[] }).required ?? []).length > 0,
    content: {
      [JSON_TYPE]: json,
      ...(isForBrowsers ? { 'text/plain': json } : {}),
      ...(csv === undefined ? {} : { 'text/csv': { schema: { type: 'string' } } }),
    },
  }
}

const headersOf = (names: readonly string[]): Response['headers'] =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

function answerOf(answer: AnswerDoc, also: readonly string[], schemas: NamedSchemas): Response {
  const { description, schema, example, headers = [], contentType = JSON_TYPE, otherTypes = [] } = answer
  const others = otherTypes.map((type) => [type, { schema: { type: 'string' } }])
  return {
    description,
    headers: { ...headersOf(['X-Request-Id', ...also, ...headers]) },
    ...(schema === null
      ? {}
      : {
          content: {
            [contentType]: { schema: schemas.place(schema), ...(example === undefined ? {} : { example }) },
            ...Object.fromEntries(others),
          },
        }),
  }
}

function byStatus(codes: ReadonlySet<ErrorCode>): readonly (readonly [status: number, codes: readonly ErrorCode[]])[] {
  const found = new Map<number, ErrorCode[]>()
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    if (!codes.has(code)) continue
    const [status] = ERRORS[code]
    found.set(status, [...(found.get(status) ?? []), code])
  }
  return [...found]
}

function refusal(status: number, codes: readonly ErrorCode[], limited: readonly string[]): Response {
  const headers = [
    'X-Request-Id',
    ...(status === 401 ? ['WWW-Authenticate'] : limited),
    ...(RETRIED.includes(status) ? ['Retry-After'] : []),
  ]
  return {
    description: codes.map((code) => `\`${code}\`: ${WHEN[code]}`).join(' '),
    headers: { ...headersOf(headers) },
    content: {
      [JSON_TYPE]: {
        schema: refTo('Error'),
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code, status) }])),
      },
    },
  }
}

const exampleOf = (code: ErrorCode, status: number) => ({
  error: {
    code,
    message: ERRORS[code][1],
    ...(code === 'validation_error' ? { field: 'limit' } : {}),
    ...(RETRIED.includes(status) ? { retryAfter: 2 } : {}),
  },
})

const DELIVERY_HEADERS: Readonly<Record<string, string>> = {
  'X-Service-Signature': '`sha256=` and the hexadecimal HMAC-SHA256 of `<timestamp>.<body>` under the secret.',
  'X-Service-Event': 'The type of the event.',
  'X-Service-Delivery': 'The id of the event.',
  'X-Service-Timestamp': 'Unix time in seconds; refuse what is older than 300.',
}

function webhookOperation(event: (typeof WEBHOOK_EVENTS)[number], schemas: NamedSchemas): Operation {
  const schema: Schema = schemas.place(event.schema)
  return {
    operationId: `webhook.${event.type}`,
    summary: event.type,
    description: event.description,
    tags: ['webhooks'],
    security: [],
    parameters: Object.entries(DELIVERY_HEADERS).map(([name, description]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    requestBody: { required: true, content: { [JSON_TYPE]: { schema, example: event.example } } },
    responses: { '2XX': { description: 'Taken. Anything else, or nothing within ten seconds, is tried again.' } },
  }
}
