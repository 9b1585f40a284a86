// Endpoints that are served outside of the route table, described as rows of it: identify, health, and this reference.

import { IdentifySchema } from '../../domain/identify.ts'
import { nullable, oneOf, strict, type TSchema, Type } from '../../domain/schema.ts'
import type { RouteDoc } from '../describe.ts'
import { PENDING } from '../events/docs.ts'
import { IDENTIFIED_EXAMPLE, IDENTIFY_BODY_EXAMPLE } from '../events/examples.ts'
import { Identified, IdentifiedEvent } from '../events/schema.ts'
import type { ApiRoute } from '../routes.ts'

/** What the document needs to know of an endpoint. */
export type DescribedRow = Pick<
  ApiRoute,
  'method' | 'path' | 'access' | 'query' | 'body' | 'headers' | 'bodyMayBeEmpty'
> & {
  readonly csv?: unknown
  /** An Idempotency-Key counts. */
  readonly once?: unknown
  readonly doc?: RouteDoc
  /** Public keys may call it as well; text/plain with the key in the query counts as JSON. */
  readonly isForBrowsers?: boolean
}

const identify: DescribedRow = {
  method: 'POST',
  path: '/v1/identify',
  access: 'identify',
  isForBrowsers: true,
  query: Type.Object({ key: Type.Optional(Type.String()) }, strict),
  body: IdentifySchema,
  doc: {
    id: 'identify',
    summary: 'Identify a device',
    description:
      'What the SDK calls. A public key gets the ids and, where the workspace says so, the verdict; a secret key gets the whole event. Once answered with 2xx the event is stored for good.',
    refusals: ['origin_not_allowed', 'idempotency_conflict'],
    members: {
      key: {
        description: 'A public key in place of the Authorization header, so that a browser needs no preflight.',
        pattern: '^pk_',
      },
      nonce: {
        description:
          'One per call: the same nonce within two minutes is answered with the first event. An `Idempotency-Key` is refused here.',
      },
      storageToken: { description: 'What the last answer held, from first-party storage.' },
      linkedId: { description: "The customer's account id." },
      email: { description: 'For lists of emails and velocity; shown masked.' },
      tag: { description: 'Your own data: an object of at most 4 KiB and 4 levels.' },
      url: { description: 'The page.' },
      referrer: { description: 'Where the page was reached from.' },
      components: { description: 'Named attributes of the browser, `{value, ms}` or `{error}`.' },
      native: { description: 'What an app says of its device.' },
      mock: { description: 'Forces outcomes. Test keys only.' },
      ip: { description: "The client's address. Secret keys only." },
      userAgent: { description: "The client's. Secret keys only." },
      headers: { description: "The client's. Secret keys only." },
    },
    bodyExample: IDENTIFY_BODY_EXAMPLE,
    answers: {
      200: {
        description: 'The event: of a public key, or of a secret one.',
        schema: Type.Union([IdentifiedEvent, Identified]),
        example: IDENTIFIED_EXAMPLE,
        headers: ['Idempotent-Replayed'],
      },
      202: { ...PENDING, description: 'Accepted; the decision follows. Read the event by its id.' },
    },
  },
}

const forget: DescribedRow = {
  method: 'POST',
  path: '/v1/identify/forget',
  access: 'identify',
  isForBrowsers: true,
  query: Type.Object({ key: Type.Optional(Type.String()) }, strict),
  doc: {
    id: 'forgetBrowser',
    summary: 'End the first-party cookie',
    description:
      'What the SDK calls on `reset()`: the cookie that identify set for a page of the same origin, or of one that the key allows, is ended. The visitor itself stays known; to erase it is `DELETE /v1/visitors/{visitorId}`.',
    refusals: ['origin_not_allowed', 'unsupported_media_type'],
    members: {
      key: {
        description: 'A public key in place of the Authorization header, so that a browser needs no preflight.',
        pattern: '^pk_',
      },
    },
    answers: { 204: { description: 'It is.', schema: null } },
  },
}

const plain = (path: string, doc: RouteDoc): DescribedRow => ({ method: 'GET', path, access: 'none', doc })
const file = (id: string, summary: string, contentType: string, schema: TSchema | null): RouteDoc => ({
  id,
  summary,
  answers: { 200: { description: 'The file.', schema, contentType } },
})
const html = Type.String()

const Ready = Type.Object({
  status: oneOf(['ready', 'unavailable']),
  failing: Type.Array(Type.String()),
  checks: Type.Unsafe<Record<string, string | null>>({ type: 'object' }),
  roles: Type.Array(Type.String()),
  durability: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
  partitions: Type.Integer(),
  kv: Type.Object({ answers: nullable(Type.Boolean()) }),
  clickhouse: Type.Object({ answers: nullable(Type.Boolean()) }),
  disk: Type.Object({ freeBytes: nullable(Type.Integer()), freeBytesMin: Type.Integer() }),
  native: Type.Boolean(),
  driver: oneOf(['uws', 'node']),
  version: Type.String(),
  advice: Type.Array(Type.Object({ code: Type.String(), says: Type.String(), mend: Type.String() })),
  ipSources: Type.Optional(Type.Unknown()),
})
const ready = {
  status: 'ready',
  failing: [],
  checks: { draining: null, log: null, keys: null, engine: null, roles: null },
  roles: ['ingress', 'engine', 'api', 'jobs'],
  durability: {},
  partitions: 1,
  kv: { answers: true },
  clickhouse: { answers: true },
  disk: { freeBytes: 52_613_349_376, freeBytesMin: 1_073_741_824 },
  native: true,
  driver: 'uws',
  version: '0.1.0',
  advice: [],
}

export const OUTSIDE_ROWS: readonly DescribedRow[] = [
  identify,
  forget,
  plain('/healthz', {
    id: 'getHealth',
    summary: 'Ask whether the process is up',
    answers: {
      200: {
        description: 'It is.',
        schema: Type.Object({ status: Type.Literal('ok') }),
        example: { status: 'ok' },
      },
    },
  }),
  plain('/readyz', {
    id: 'getReadiness',
    summary: 'Ask whether the process can accept',
    answers: {
      200: { description: 'It can.', schema: Ready, example: ready },
      503: {
        description: 'It cannot; `failing` names why.',
        schema: Ready,
        headers: ['Retry-After'],
        example: {
          ...ready,
          status: 'unavailable',
          failing: ['log'],
          checks: { ...ready.checks, log: 'disk is full' },
        },
      },
    },
  }),
  plain('/metrics', file('getMetrics', 'Read metrics', 'text/plain', Type.String())),
  plain('/openapi.json', {
    ...file('getOpenApi', 'Read this document', 'application/json', Type.Unsafe({ type: 'object' })),
  }),
  plain(
    '/postman.json',
    file('getPostman', 'Read it as a Postman collection', 'application/json', Type.Unsafe({ type: 'object' })),
  ),
  plain('/docs', file('getDocs', 'Read it as pages, with the guides', 'text/html', html)),
]
