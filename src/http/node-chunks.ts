// Reads the frames of chunked bodies beside the parser of Node.js, which passes over chunk extensions (RFC 9112, 7.1.1) without a
// word: two machines may read them differently, so such a request is refused.

import type { IncomingMessage } from 'node:http'

/** Sixteen digits would be more than any body may have. */
const SIZE_DIGITS_MAX = 15
const HEAD_END = Buffer.from('\r\n\r\n')
const [CR, LF] = [13, 10]

export interface ChunkWatch {
  /** What the connection received, before the parser sees it. Returns false where a chunk of the body under way has an extension. */
  packet(bytes: Buffer): boolean
  /** The parser has read the head of this request in the latest packet. Returns false as `packet` does. */
  begin(request: IncomingMessage): boolean
}

/** What comes next in a chunked body. */
type Frame = 'size' | 'data' | 'trailer'

/** For one connection. */
export function watchChunks(): ChunkWatch {
  let bytes: Buffer = Buffer.alloc(0)
  /** The first byte of the packet that belongs to no request known yet. */
  let at = 0
  /** Bytes of a body with a length, or of a chunk with its line end, that are still to come. */
  let skip = 0
  let frame: Frame | null = null
  let line = ''
  /** The end of the former packet, where the end of a head may begin. */
  let tail: Buffer = Buffer.alloc(0)

  /** Goes over the body as far as the packet has it. */
  function read(): boolean {
    while (at < bytes.length && (skip > 0 || frame !== null)) {
      if (skip > 0) {
        const taken = Math.min(skip, bytes.length - at)
        at += taken
        skip -= taken
        continue
      }
      if (frame === 'data') frame = 'size'
      const byte = bytes[at++] as number
      if (byte === LF) {
        if (frame === 'trailer' && line === '') frame = null
        else if (frame === 'size') {
          const size = Number.parseInt(line, 16)
          frame = size > 0 ? 'data' : 'trailer'
          if (size > 0) skip = size + 2
        }
        line = ''
      } else if (byte !== CR) {
        if (frame === 'trailer') line = 'a field'
        else {
          line += String.fromCharCode(byte)
          // The parser refuses what else is no size.
          if (/[;\s]/.test(line) || line.length > SIZE_DIGITS_MAX) return false
        }
      }
    }
    return true
  }

  /** Where the head ends that the parser has just read. */
  function headEnd(): number {
    if (at === 0 && tail.length > 0) {
      const straddling = Buffer.concat([tail, bytes.subarray(0, HEAD_END.length - 1)]).indexOf(HEAD_END)
      if (straddling >= 0) return straddling + HEAD_END.length - tail.length
    }
    const found = bytes.indexOf(HEAD_END, at)
    return found < 0 ? bytes.length : found + HEAD_END.length
  }

  return {
    packet(received) {
      tail = Buffer.concat([tail, bytes.subarray(at)]).subarray(-(HEAD_END.length - 1))
      bytes = received
      at = 0
      return read()
    },
    begin({ headers }) {
      at = headEnd()
      if (headers['transfer-encoding'] !== undefined) {
        frame = 'size'
        line = ''
      } else skip = Number(headers['content-length'] ?? 0)
      return read()
    },
  }
}
