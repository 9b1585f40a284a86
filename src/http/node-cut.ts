// Cuts what arrives on a connection where a head or a body ends, so that the parser of Node.js is given one at a time. It reads over
// chunk extensions and keeps what it refuses to itself: here both are seen.

import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { must } from '../lib/must.ts'
import { BadFraming } from './errors.ts'

const HEAD_END = '\r\n\r\n'
/** Paths of routes are shorter. */
const OPENING_BYTES_MAX = 512
const FIRST_LINE = /^[\r\n]*([A-Z]+) ([^\s?]+)[\s?]/
const [CR, LF] = [13, 10]
const DIGITS_MAX = 15

export interface Cut {
  /** To be called when the parser has made a request of the head. */
  begin(request: IncomingMessage): void
  /** Method and target of a head that is not read to its end, where it got that far. */
  unread(): { readonly method: string; readonly url: string }
  /** Nothing that arrives from now on is read. */
  stop(): void
}

/** `refuse` is called for what the parser would take and must not. */
export function cutMessages(socket: Socket, refuse: (fault: Error) => void): Cut {
  const parse = must(socket.listeners('data')[0], 'the listener that parses') as (bytes: Buffer) => void
  /** How a head that is not read to its end begins, and its last bytes, which may begin its end. */
  let opening = ''
  let tail = ''
  /** What the parser is given of a head, until that makes a request. */
  let piece: Buffer | null = null
  let body: Body | null = null
  let isStopped = false

  /** How many of `bytes` end the head; all of them when none does. */
  function headBytes(bytes: Buffer): number {
    const seam = tail === '' ? -1 : (tail + bytes.toString('latin1', 0, 3)).indexOf(HEAD_END)
    if (seam >= 0) return seam + HEAD_END.length - tail.length
    const end = bytes.indexOf(HEAD_END, 0, 'latin1')
    return end < 0 ? bytes.length : end + HEAD_END.length
  }

  const openingOf = (bytes: Buffer | null) =>
    bytes === null ? opening : (opening + bytes.toString('latin1', 0, OPENING_BYTES_MAX)).slice(0, OPENING_BYTES_MAX)

  function takeHead(bytes: Buffer): number {
    const taken = headBytes(bytes)
    piece = taken === bytes.length ? bytes : bytes.subarray(0, taken)
    parse.call(socket, piece)
    if (piece === null) return taken
    opening = openingOf(piece)
    tail = (tail + piece.toString('latin1', Math.max(0, taken - 3))).slice(-3)
    piece = null
    return taken
  }

  function takeBody(of: Body, bytes: Buffer): number {
    const taken = of.take(bytes)
    if (taken === NONE) {
      isStopped = true
      refuse(new BadFraming('a chunk is not a size, its bytes and a line end'))
      return bytes.length
    }
    if (of.isOver()) body = null
    parse.call(socket, taken === bytes.length ? bytes : bytes.subarray(0, taken))
    return taken
  }

  function take(bytes: Buffer): void {
    let rest = bytes
    while (rest.length > 0 && !isStopped) {
      // Node.js has enough to do: it takes nothing before it resumes.
      if (socket.isPaused()) {
        socket.unshift(rest)
        return
      }
      rest = rest.subarray(body === null ? takeHead(rest) : takeBody(body, rest))
    }
  }

  socket.removeListener('data', parse)
  socket.on('data', take)

  return {
    begin({ headers }) {
      piece = null
      opening = tail = ''
      if (headers['transfer-encoding'] !== undefined) body = chunkedBody()
      else if (Number(headers['content-length'] ?? 0) > 0) body = plainBody(Number(headers['content-length']))
    },
    unread() {
      const [, method = '', url = ''] = FIRST_LINE.exec(openingOf(piece)) ?? []
      return { method, url }
    },
    stop() {
      isStopped = true
    },
  }
}

/** What `take` returns for bytes that cannot be part of the body. */
const NONE = -1

interface Body {
  /** How many of the bytes belong to it, or NONE. */
  take(bytes: Buffer): number
  isOver(): boolean
}

function plainBody(length: number): Body {
  let left = length
  return {
    take(bytes) {
      const taken = Math.min(left, bytes.length)
      left -= taken
      return taken
    },
    isOver: () => left === 0,
  }
}

type Within = 'size' | 'size end' | 'bytes' | 'bytes end' | 'line' | 'field' | 'last end' | 'nothing'

function hexOf(byte: number): number {
  const digit = Number.parseInt(String.fromCharCode(byte), 16)
  return Number.isNaN(digit) ? -1 : digit
}

function chunkedBody(): Body {
  let within: Within = 'size'
  let size = 0
  let digits = 0
  /** Of the bytes of a chunk. */
  let left = 0

  /** False: it cannot stand here. */
  function takeByte(byte: number): boolean {
    switch (within) {
      case 'size': {
        const digit = hexOf(byte)
        if (digit < 0) {
          within = 'size end'
          return digits > 0 && byte === CR
        }
        size = size * 16 + digit
        return ++digits <= DIGITS_MAX
      }
      case 'size end':
        within = size === 0 ? 'line' : 'bytes'
        left = size
        return byte === LF
      case 'bytes':
        within = 'bytes end'
        return byte === CR
      case 'bytes end':
        within = 'size'
        size = digits = 0
        return byte === LF
      case 'line':
        within = byte === CR ? 'last end' : 'field'
        return true
      case 'field':
        if (byte === LF) within = 'line'
        return true
      case 'last end':
        within = 'nothing'
        return byte === LF
      case 'nothing':
        return false
    }
  }

  return {
    take(bytes) {
      let at = 0
      while (at < bytes.length && within !== 'nothing') {
        if (within === 'bytes' && left > 0) {
          const skipped = Math.min(left, bytes.length - at)
          left -= skipped
          at += skipped
        } else if (!takeByte(bytes[at++] as number)) return NONE
      }
      return at
    },
    isOver: () => within === 'nothing',
  }
}
