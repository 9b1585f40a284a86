// Cursors: opaque, versioned, signed, and good only for the question they were given for (decisions §3).

import { createHmac, timingSafeEqual } from 'node:crypto'
import { invalid } from '../domain/errors.ts'
import { requestTime } from '../domain/ids.ts'

const VERSION = 1
const MAC_BYTES = 12
const CURSOR_CHARS_MAX = 200

function mac(secret: string, question: string, payload: string): Buffer {
  return createHmac('sha256', secret).update(`cursor\0${question}\0${payload}`).digest().subarray(0, MAC_BYTES)
}

/** `question` is any text that names the filters; `last` is what the next page goes on after, at most 100 characters. */
export function sealCursor(secret: string, question: string, last: string): string {
  const payload = `${VERSION}${last}`
  return Buffer.concat([mac(secret, question, payload), Buffer.from(payload)]).toString('base64url')
}

/** What was sealed. Throws validation_error `cursor` for anything we did not write for this question. */
export function openCursor(secret: string, question: string, cursor: string): string {
  if (cursor.length > CURSOR_CHARS_MAX) throw refused()
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) throw refused()
  const payload = bytes.toString('utf8', MAC_BYTES)
  if (!timingSafeEqual(mac(secret, question, payload), bytes.subarray(0, MAC_BYTES))) throw refused()
  if (payload[0] !== String(VERSION)) throw refused()
  return payload.slice(1)
}

const refused = () => invalid('cursor', 'This cursor was not given for this request.')

/** For pages of events: `requestId` is the last item of the page. */
export const writeCursor = sealCursor

/** The last item of the previous page. Throws as `openCursor` does. */
export function readCursor(
  secret: string,
  question: string,
  cursor: string,
): { readonly ts: number; readonly requestId: string } {
  const requestId = openCursor(secret, question, cursor)
  const ts = requestTime(requestId)
  if (ts === null) throw refused()
  return { ts, requestId }
}
