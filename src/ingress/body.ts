// From bytes to an identify request that may be accepted: parsing, the schema, and the checks a schema cannot say.
// The order of refusals is the contract's (src/docs/contract.md, Errors).

import { ApiError, invalid } from '../domain/errors.ts'
import { type IdentifyBody, IdentifySchema, type Mock, TAG_BYTES_MAX, TAG_DEPTH_MAX } from '../domain/identify.ts'
import { canonicalIp } from '../domain/ip.ts'
import { parseJson } from '../http/json-body.ts'
import { nestsDeeper } from '../http/json-depth.ts'
import { parseDatetime } from '../lib/datetime.ts'
import { DAY_MS } from '../lib/durations.ts'
import { validator } from '../lib/validate.ts'
import type { Caller } from '../records/auth.ts'

const validate: (data: unknown) => asserts data is IdentifyBody = validator<IdentifyBody>(IdentifySchema, 'at once')
const SECRET_ONLY = ['ip', 'userAgent', 'headers'] as const

/** What this caller may not say at all, whatever else is wrong with the body. */
function permitBody(data: unknown, caller: Caller): void {
  if (data === null || typeof data !== 'object' || Array.isArray(data)) return
  if (Object.hasOwn(data, 'mock') && caller.env !== 'test') {
    throw new ApiError('insufficient_permissions', { message: 'Only a test key may mock.', field: 'mock' })
  }
  if (caller.key.kind === 'secret') return
  for (const field of SECRET_ONLY) {
    if (Object.hasOwn(data, field)) {
      throw new ApiError('insufficient_permissions', { message: `Only a secret key may pass ${field}.`, field })
    }
  }
}

/** Throws ApiError validation_error naming `tag`. */
export function checkTag(tag: IdentifyBody['tag']): void {
  if (tag === undefined) return
  if (nestsDeeper(tag, TAG_DEPTH_MAX)) throw invalid('tag', `A tag nests at most ${TAG_DEPTH_MAX} levels.`)
  if (Buffer.byteLength(JSON.stringify(tag)) > TAG_BYTES_MAX)
    throw invalid('tag', `A tag holds at most ${TAG_BYTES_MAX} bytes.`)
}

function ipOrThrow(text: string, field: string): string {
  const canonical = canonicalIp(text)
  if (canonical === null) throw invalid(field, 'This is no IP address.')
  return canonical
}

/** The event's time: now, or where a sandbox travels to. */
function eventTime(mock: Mock | undefined, nowMs: number, retentionDays: number): number {
  if (mock?.at === undefined) return nowMs
  const at = parseDatetime(mock.at)
  if (at === null) throw invalid('mock.at', 'This is no RFC 3339 time.')
  if (at > nowMs) throw invalid('mock.at', 'This time lies in the future.')
  if (at < nowMs - retentionDays * DAY_MS) throw invalid('mock.at', `This time is older than ${retentionDays} days.`)
  return at
}

export interface Accepted {
  readonly body: IdentifyBody
  /** The event's time, milliseconds. */
  readonly atMs: number
  /** The client's address the secret key names, canonical, or null. */
  readonly ip: string | null
  /** The address the event is to have in a sandbox, canonical, or null. */
  readonly mockIp: string | null
}

/** Throws the ApiError the caller is to get. */
export function readIdentify(bytes: Uint8Array, caller: Caller, nowMs: number, retentionDays: number): Accepted {
  // Halves of surrogate pairs are replaced where the body is decided.
  return checkIdentify(parseJson(bytes, 'keep'), caller, nowMs, retentionDays)
}

/** The same for what is parsed already. */
export function checkIdentify(data: unknown, caller: Caller, nowMs: number, retentionDays: number): Accepted {
  permitBody(data, caller)
  validate(data)
  checkTag(data.tag)
  return {
    body: data,
    atMs: eventTime(data.mock, nowMs, retentionDays),
    ip: data.ip === undefined ? null : ipOrThrow(data.ip, 'ip'),
    mockIp: data.mock?.ip === undefined ? null : ipOrThrow(data.mock.ip, 'mock.ip'),
  }
}
