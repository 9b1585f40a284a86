// The parts of an OpenAPI 3.1 document that we write and read, as types.

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly additionalProperties?: boolean | Schema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly uniqueItems?: boolean
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  /** What a request that succeeds has here. */
  readonly example?: string
  readonly schema: Schema
  /** Of a query: the members of an object are parameters of their own. */
  readonly style?: 'form'
  readonly explode?: true
}

export interface MediaType {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>
  readonly content?: Readonly<Record<string, MediaType>>
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Readonly<Record<string, MediaType>>
  }
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>
  /** The endpoint exists, but nobody has said what it answers. */
  readonly 'x-undescribed'?: true
}

export type DocumentedMethod = 'get' | 'post' | 'put' | 'patch' | 'delete'
const DOCUMENTED_METHODS: readonly DocumentedMethod[] = ['get', 'post', 'put', 'patch', 'delete']
export type PathItem = Readonly<Partial<Record<DocumentedMethod, Operation>>>

export interface OpenApiDocument {
  readonly openapi: '3.1.1'
  readonly info: {
    readonly title: string
    readonly version: string
    readonly description: string
    readonly license: { readonly name: string; readonly identifier: string }
  }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, PathItem>>
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Response>>
    readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>
  }
}

export interface Endpoint {
  /** Upper case. */
  readonly method: string
  /** `/v1/events/{requestId}` */
  readonly path: string
  readonly operation: Operation
}

export function* endpointsOf({ paths }: Pick<OpenApiDocument, 'paths'>): Generator<Endpoint> {
  for (const [path, item] of Object.entries(paths)) {
    for (const method of DOCUMENTED_METHODS) {
      const operation = item[method]
      if (operation !== undefined) yield { method: method.toUpperCase(), path, operation }
    }
  }
}

const RESPONSE_PREFIX = '#/components/responses/'
const SCHEMA_PREFIX = '#/components/schemas/'

/** The response itself where it is named. */
export function responseOf(document: OpenApiDocument, response: Response | { readonly $ref: string }): Response {
  if (!('$ref' in response)) return response
  const found = document.components.responses[response.$ref.slice(RESPONSE_PREFIX.length)]
  if (found === undefined) throw new Error(`the document has no ${response.$ref}`)
  return found
}

/** The name a schema refers to; null for one that stands here itself. */
export const nameOf = ({ $ref }: Schema): string | null => $ref?.slice(SCHEMA_PREFIX.length) ?? null

export const refTo = (name: string): { readonly $ref: string } => ({ $ref: SCHEMA_PREFIX + name })
export const refToResponse = (name: string): { readonly $ref: string } => ({ $ref: RESPONSE_PREFIX + name })
