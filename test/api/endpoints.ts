// Requests made from the OpenAPI document: what tests of every endpoint have in common.

import type { Endpoint, Operation } from '../../src/api/reference/openapi.ts'
import type { Description } from '../helpers/described.ts'

export interface Asked {
  readonly method: string
  /** Filled, with its query. */
  readonly path: string
  /** null: no Authorization header. */
  readonly key: string | null
  readonly body?: unknown
  /** Sent as it is instead of `body`. */
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly code: string | null
  readonly field: string | null
  readonly message: string
}

const HANG_MS = 60_000
const JSON_TYPE = 'application/json'

/** Sends one request; an answer that does not end, such as a stream, is left once its headers are in. */
export async function ask(url: string, { method, path, key, body, raw, headers = {} }: Asked): Promise<Got> {
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
      ...(sent === undefined ? {} : { 'Content-Type': JSON_TYPE }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
    signal: AbortSignal.timeout(HANG_MS),
  })
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('text/event-stream')) await response.body?.cancel()
  const text = type.startsWith('text/event-stream') ? '' : await response.text()
  const { error } = (type === JSON_TYPE && response.status >= 400 ? JSON.parse(text) : {}) as {
    error?: { code: string; field?: string; message: string }
  }
  return {
    status: response.status,
    headers: response.headers,
    text,
    code: error?.code ?? null,
    field: error?.field ?? null,
    message: error?.message ?? '',
  }
}

/** As `ask`; throws when the answer is not as described. */
export async function askDescribed(url: string, description: Description, asked: Asked): Promise<Got> {
  const got = await ask(url, asked)
  const faults = description.faults({ ...asked, ...got })
  if (faults.length > 0) throw new Error(`not as described: ${faults.join('; ')}`)
  return got
}

/** The path with `ids` in it; an id that is not given is one that names nothing. */
export const fill = (path: string, ids: Readonly<Record<string, string>> = {}): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? UNKNOWN_IDS[name] ?? 'unknown'))

export const paramsOf = ({ path }: Endpoint): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

export const bodyOf = ({ requestBody }: Operation): unknown => requestBody?.content[JSON_TYPE]?.example

const NOBODY = '00000000000000000000'
/** Well-formed ids that name nothing. */
export const UNKNOWN_IDS: Readonly<Record<string, string>> = {
  requestId: 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN',
  visitorId: `pv_${NOBODY}`,
  ruleId: `rul_${NOBODY}`,
  listId: `lst_${NOBODY}`,
  webhookId: `wh_${NOBODY}`,
  deliveryId: `dlv_${NOBODY}`,
  alertId: `alr_${NOBODY}`,
  erasureId: `era_${NOBODY}`,
  workspaceId: `ws_${NOBODY}`,
  keyId: `key_${NOBODY}`,
}
