// One pass over a request's headers: refuses what two machines could read differently, and keeps what the route wants.

import { BadFraming, HeadersTooLarge } from './errors.ts'
import type { HttpHeader } from './message.ts'
import type { RawRequest } from './port.ts'

/** Which headers a route keeps, and in which slot. */
export interface WantedHeaders {
  readonly slots: ReadonlyMap<string, number>
  /** Bit n: some wanted name has n characters (31 stands for all longer ones). */
  readonly lengths: number
  readonly all: boolean
}

export interface Headers {
  /** Why the request cannot be served. */
  readonly fault: Error | null
  /** -1 when there is none. */
  readonly contentLength: number
  readonly chunked: boolean
  /** By slot. */
  readonly values: string[]
  /** Only for routes that want all. */
  readonly pairs: HttpHeader[]
}

export function wantedHeaders(names: readonly string[] | 'all'): WantedHeaders {
  const all = names === 'all'
  const slots = new Map((all ? [] : names).map((name, slot) => [name.toLowerCase(), slot]))
  let lengths = 0
  for (const name of slots.keys()) lengths |= 1 << Math.min(31, name.length)
  return { slots, lengths, all }
}

const NO_PAIRS: HttpHeader[] = []

/** A scanner reads one request at a time; what it returns belongs to the caller. */
export function openHeaderScanner(headersBytesMax: number) {
  // Kept outside of `visit` so that a request allocates no closure.
  let wanted: WantedHeaders
  let values: string[]
  let pairs: HttpHeader[]
  let bytes = 0
  let hosts = 0
  let lengths = 0
  let encodings = 0
  let authorizations = 0
  let contentLength = -1
  let odd: string | null = null

  function visit(name: string, value: string): void {
    const size = name.length
    bytes += size + value.length
    switch (size) {
      case 0:
        odd = 'a header without a name'
        break
      case 4:
        if (name === 'host' && ++hosts > 1) odd = 'more than one Host'
        break
      case 13:
        if (name === 'authorization' && ++authorizations > 1) odd = 'more than one Authorization'
        break
      case 14:
        if (name !== 'content-length') break
        if (++lengths > 1) odd = 'more than one Content-Length'
        else if (/^[0-9]{1,15}$/.test(value)) contentLength = Number(value)
        else odd = 'Content-Length is not a number'
        break
      case 17:
        if (name !== 'transfer-encoding') break
        if (++encodings > 1) odd = 'more than one Transfer-Encoding'
        else if (value.toLowerCase() !== 'chunked') odd = 'Transfer-Encoding is not chunked'
        break
    }
    if ((wanted.lengths >>> Math.min(size, 31)) & 1) {
      const slot = wanted.slots.get(name)
      if (slot !== undefined) {
        const first = values[slot]
        values[slot] = first === undefined || first === '' ? value : join(name, first, value)
      }
    }
    if (wanted.all) pairs.push([name, value])
  }

  return {
    scan(request: RawRequest, want: WantedHeaders): Headers {
      wanted = want
      values = new Array(want.slots.size)
      pairs = want.all ? [] : NO_PAIRS
      bytes = hosts = lengths = encodings = authorizations = 0
      contentLength = -1
      odd = null
      request.forEach(visit)
      if (lengths > 0 && encodings > 0) odd = 'both Content-Length and Transfer-Encoding'
      let fault: Error | null = null
      if (odd !== null) fault = new BadFraming(odd)
      else if (bytes > headersBytesMax) fault = new HeadersTooLarge(`headers are longer than ${headersBytesMax} bytes`)
      return { fault, contentLength, chunked: encodings > 0, values, pairs }
    },
  }
}

/** Repeated fields in one value; cookies are the exception with their own separator. */
function join(name: string, first: string, second: string): string {
  return name === 'cookie' ? `${first}; ${second}` : `${first}, ${second}`
}
