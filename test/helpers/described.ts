// Holds answers to the OpenAPI document: the status must be declared for the endpoint, the body must have its schema and no
// member beside it, a refusal a code that the endpoint can give.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import {
  type Endpoint,
  endpointsOf,
  type OpenApiDocument,
  type Response,
  responseOf,
  type Schema,
} from '../../src/api/reference/openapi.ts'

export interface Given {
  readonly method: string
  /** With or without a query. */
  readonly path: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface Description {
  readonly document: OpenApiDocument
  /** The endpoint a request goes to; null when the document has none there. */
  find(method: string, path: string): Endpoint | null
  /** Every way in which the answer is not as described; none for endpoints that nobody has described. */
  faults(given: Given): string[]
  /** The same of a body that a receiver got, whichever its form. What marks a test is allowed. */
  deliveryFaults(body: string): string[]
}

const JSON_TYPE = 'application/json'
const REQUIRED_HEADERS: Readonly<Record<string, RegExp>> = {
  ETag: /^"[^"]+"$/,
  'Retry-After': /^[1-9]\d*$/,
  'WWW-Authenticate': /^Bearer$/,
}
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
/** Whatever the endpoint, the server as a whole may answer these. */
const EVERYWHERE: readonly string[] = ['route_not_found', 'method_not_allowed']

/** Objects take no members that they do not name, where the schema leaves it open. */
function tightened(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tightened)
  if (typeof value !== 'object' || value === null) return value
  const schema = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, tightened(inner)]))
  const isOpen = typeof schema.properties === 'object' && !Object.hasOwn(schema, 'additionalProperties')
  return isOpen ? { ...schema, additionalProperties: false } : schema
}

/** References from outside of the document that holds what they lead to. */
function absolute(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(absolute)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(
    entries.map(([name, inner]) => [name, name === '$ref' ? `openapi.json${inner as string}` : absolute(inner)]),
  )
}

type Compile = (schema: Schema) => ValidateFunction

/** By the texts of what the schemas refer to. Compiling takes longer than most of what tests wait for. */
const compilers = new Map<string, Compile>()

/** The compiler of schemas of the document, one a process. `answers` are held to what they name, requests to what they say. */
export function openCompiler(document: OpenApiDocument, of: 'answers' | 'requests'): Compile {
  const { schemas } = document.components
  const name = `${of} ${JSON.stringify(schemas)}`
  const known = compilers.get(name) ?? makeCompiler(schemas, of)
  compilers.set(name, known)
  return known
}

function makeCompiler(schemas: object, of: 'answers' | 'requests'): Compile {
  // A process uses what it compiles a few times: code is neither inlined nor optimized.
  const briefly = { inlineRefs: false, code: { optimize: false } }
  const ajv = new Ajv2020({ strict: false, allErrors: of === 'answers', validateSchema: false, ...briefly })
  ajv.addFormat('date-time', of === 'answers' ? MOMENT : true)
  ajv.addFormat('uri', of === 'answers' ? (text: string) => URL.canParse(text) : true)
  const prepare = of === 'answers' ? tightened : (schema: unknown) => schema
  ajv.addSchema({ $id: 'openapi.json', components: { schemas: prepare(schemas) } })
  const compiled = new WeakMap<Schema, ValidateFunction>()
  const byText = new Map<string, ValidateFunction>()
  return (schema) => {
    const known = compiled.get(schema)
    if (known !== undefined) return known
    const text = JSON.stringify(schema)
    const made = byText.get(text) ?? ajv.compile(absolute(prepare(schema)) as object)
    byText.set(text, made)
    compiled.set(schema, made)
    return made
  }
}

export function openDescription(document: OpenApiDocument): Description {
  const compile = openCompiler(document, 'answers')
  const endpoints = new Map<string, { readonly endpoint: Endpoint; readonly pattern: RegExp }[]>()
  const shelfOf = (method: string, path: string) => `${method} ${path.split('/').length}`
  for (const endpoint of endpointsOf(document)) {
    const { method, path } = endpoint
    const shelf = endpoints.get(shelfOf(method, path)) ?? []
    const one = { endpoint, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }
    // Literal paths win over patterns.
    if (path.includes('{')) shelf.push(one)
    else shelf.unshift(one)
    endpoints.set(shelfOf(method, path), shelf)
  }

  function find(method: string, path: string): Endpoint | null {
    // As whoever asks resolves `..` before it sends anything.
    const bare = new URL(`http://server${path}`).pathname
    const shelf = endpoints.get(shelfOf(method, bare)) ?? []
    return shelf.find(({ pattern }) => pattern.test(bare))?.endpoint ?? null
  }

  function bodyFaults({ content = {} }: Response, { text, headers }: Given): string[] {
    const [type = '', media] = Object.entries(content)[0] ?? []
    if (media === undefined) return text === '' ? [] : ['there is a body']
    const given = headers.get('content-type') ?? ''
    if (!given.startsWith(type)) return [`is of type ${given}`]
    if (type !== JSON_TYPE) return []
    return schemaFaults(media.schema, JSON.parse(text))
  }

  function schemaFaults(schema: Schema, value: unknown): string[] {
    const check = compile(schema)
    if (check(value)) return []
    return (check.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`,
    )
  }

  function deliveryFaults(body: string): string[] {
    const { data, ...head } = JSON.parse(body) as { data: { test?: true }; eventType?: string; event?: string }
    const type = head.eventType ?? head.event ?? ''
    const schema = document.webhooks[type]?.post.requestBody?.content[JSON_TYPE]?.schema
    if (schema === undefined) return [`${type} is not in the document`]
    const { test: _, ...shown } = data
    return schemaFaults(schema, { ...head, data: shown }).map((fault) => `${type}: ${fault}`)
  }

  function faults(given: Given): string[] {
    const { method, path, status, headers, text } = given
    const endpoint = find(method, path)
    if (method === 'HEAD' || method === 'OPTIONS' || status === 304) return []
    const code = status < 400 || headers.get('content-type') !== JSON_TYPE ? null : codeOf(text)
    if (code !== null && EVERYWHERE.includes(code)) return []
    // Leads whoever opens the bare address to a page; a client resolves dots on its own.
    if (endpoint === null && /^\/(?:\.|%2e){0,2}$/i.test(path)) return []
    if (endpoint === null) return [`${method} ${path} is not in the document`]
    const { operation } = endpoint
    if (operation['x-undescribed'] === true) return []
    const declared = operation.responses[status]
    const name = `${method} ${endpoint.path} ${status}`
    if (declared === undefined) return [`${name} is not declared: ${text.slice(0, 200)}`]
    const response = responseOf(document, declared)
    const codes = Object.keys(response.content?.[JSON_TYPE]?.examples ?? {})
    const found = bodyFaults(response, given)
    if (codes.length > 0 && !codes.includes(code ?? '')) found.push(`code ${code} is not declared`)
    if (headers.get('x-request-id') === null) found.push('has no X-Request-Id')
    for (const [header, pattern] of Object.entries(REQUIRED_HEADERS)) {
      const isPromised = response.headers !== undefined && Object.hasOwn(response.headers, header)
      if (isPromised && !pattern.test(headers.get(header) ?? '') && !isOptional(header, status)) {
        found.push(`${header} is ${headers.get(header)}`)
      }
    }
    return found.map((fault) => `${name}: ${fault}`)
  }
  return { document, find, faults, deliveryFaults }
}

/** Not every failure knows when to try again. */
const isOptional = (header: string, status: number): boolean => header === 'Retry-After' && status === 503

function codeOf(text: string): string | null {
  const { error } = JSON.parse(text) as { error?: { code?: string } }
  return error?.code ?? null
}

/** What servers say of themselves, by the text. */
const described = new Map<string, Description>()
/** What was last heard from a server, by its address. */
const heard = new Map<string, { readonly etag: string; readonly description: Description }>()

/** What the server at `url` says of itself; null when it serves no API. */
export async function fetchDescription(url: string): Promise<Description | null> {
  const last = heard.get(url)
  const answer = await fetch(
    `${url}/openapi.json`,
    last === undefined ? {} : { headers: { 'If-None-Match': last.etag } },
  )
  const text = await answer.text()
  if (last !== undefined && answer.status === 304) return last.description
  if (answer.status !== 200) return null
  const description = described.get(text) ?? openDescription(JSON.parse(text))
  described.set(text, description)
  const etag = answer.headers.get('etag')
  if (etag !== null) heard.set(url, { etag, description })
  return description
}
