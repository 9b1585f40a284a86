// Cursors: opaque, versioned, signed, and good only for the question they were given for (src/docs/contract.md, Events).

import { createHmac, timingSafeEqual } from 'node:crypto'
import { invalid } from '../domain/errors.ts'
import { requestTime } from '../domain/ids.ts'

const VERSION = 1
const MAC_BYTES = 12
/** Twice what the longest entry of a list takes. */
const CURSOR_CHARS_MAX = 800

function mac(secret: string, question: string, payload: string): Buffer {
  return createHmac('sha256', secret).update(`cursor\0${question}\0${payload}`).digest().subarray(0, MAC_BYTES)
}

/** `question` is any text that names the filters; `last` is the id of the page's last item. */
export function writeCursor(secret: string, question: string, last: string): string {
  const payload = `${VERSION}${last}`
  return Buffer.concat([mac(secret, question, payload), Buffer.from(payload)]).toString('base64url')
}

const refused = () => invalid('cursor', 'This cursor was not given for this request.')

/** The last item of the previous page. Throws validation_error `cursor` for anything we did not write for this question. */
export function readLast(secret: string, question: string, cursor: string): string {
  if (cursor.length > CURSOR_CHARS_MAX) throw refused()
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) throw refused()
  const payload = bytes.toString('utf8', MAC_BYTES)
  if (!timingSafeEqual(mac(secret, question, payload), bytes.subarray(0, MAC_BYTES))) throw refused()
  if (payload[0] !== String(VERSION)) throw refused()
  return payload.slice(1)
}

/** The same for pages of events. */
export function readCursor(
  secret: string,
  question: string,
  cursor: string,
): { readonly ts: number; readonly requestId: string } {
  const requestId = readLast(secret, question, cursor)
  const ts = requestTime(requestId)
  if (ts === null) throw refused()
  return { ts, requestId }
}
