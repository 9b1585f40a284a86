// A request and its answer over node:http, in the shapes of the port.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isIPv4, SocketAddress } from 'node:net'
import type { Duplex } from 'node:stream'
import { BadFraming, HeadersTooLarge } from './errors.ts'
import type { RawRequest, RawResponse } from './port.ts'

const FIELDS_MAX = 100
/** How long a client may take nothing of an answer that is whole. */
const STALL_MS = 30_000
const NOT_ASCII = /[^\0-\x7f]/
const ABSOLUTE = /^https?:\/\/[^/?#]*/i
const utf8 = new TextDecoder('utf-8', { fatal: true })
const NOTHING = new ArrayBuffer(0)

/** What the parser of Node.js lets through and is not served, or null. */
export function requestFault({ httpVersion, rawHeaders }: IncomingMessage): Error | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new BadFraming(`HTTP/${httpVersion}`)
  if (rawHeaders.length > 2 * FIELDS_MAX) return new HeadersTooLarge(`more than ${FIELDS_MAX} header fields`)
  const isHost = (name: string, i: number) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host'
  if (httpVersion === '1.1' && !rawHeaders.some(isHost)) return new BadFraming('no Host')
  return null
}

/** Node.js gives bytes as Latin-1. */
function textOf(value: string): string {
  if (!NOT_ASCII.test(value)) return value
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return ''
  }
}

export function requestOf(of: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>): RawRequest {
  const { method = '', url = '', rawHeaders } = of
  const target = url.startsWith('/') ? url : url.replace(ABSOLUTE, '') || '/'
  const mark = target.indexOf('?')
  return {
    getMethod: () => method.toLowerCase(),
    getUrl: () => (mark < 0 ? target : target.slice(0, mark)),
    getQuery: () => (mark < 0 ? undefined : target.slice(mark + 1)),
    forEach(visit) {
      for (let i = 0; i < rawHeaders.length; i += 2)
        visit((rawHeaders[i] as string).toLowerCase(), textOf(rawHeaders[i + 1] as string))
    },
  }
}

function addressOf(address: string | undefined): ArrayBuffer {
  if (address === undefined) return NOTHING
  if (isIPv4(address)) return Uint8Array.from(address.split('.').map(Number)).buffer
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return addressOf(mapped)
  const { address: plain } = new SocketAddress({ address: address.split('%')[0] as string, family: 'ipv6' })
  const [head = '', tail] = plain.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const all = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 255])).buffer
}

const bytesOf = (body: string | Uint8Array): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength

const copyOf = ({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer =>
  buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer

export interface NodeAnswer extends RawResponse {
  /** The connection is gone, or what comes over it is no body. True: nothing had been answered. */
  abandon(): boolean
}

/** `closing` is called when the connection closes with the answer. */
export function answerOver(request: IncomingMessage, response: ServerResponse, closing: () => void): NodeAnswer {
  const { socket } = request
  let status = '200 OK'
  const headers: string[] = []
  let isOver = false
  let onAborted: (() => void) | null = null

  function writeHead(closes: boolean): void {
    if (response.headersSent) return
    if (closes) response.shouldKeepAlive = false
    response.writeHead(Number(status.slice(0, 3)), status.slice(4), headers)
  }

  function finish(body: string | Uint8Array, closes: boolean): void {
    isOver = true
    if (closes || !response.shouldKeepAlive) closing()
    response.end(body)
    if (socket.writableLength > 0) socket.setTimeout(STALL_MS)
    // An answer without an end of its own was begun as one that goes on.
    if (closes && response.shouldKeepAlive) response.once('finish', () => socket.destroySoon())
  }

  const raw: NodeAnswer = {
    writeStatus: (text) => {
      status = text
    },
    writeHeader(name, value) {
      const [first = '', ...further] = value.split('\r\n')
      headers.push(name, first)
      for (const field of further) {
        const at = field.indexOf(': ')
        headers.push(field.slice(0, at), field.slice(at + 2))
      }
    },
    write(chunk) {
      writeHead(false)
      // A socket that is not corked Node.js corks until the next tick; what the system did not take is to be known now.
      socket.cork()
      const isRoomy = response.write(chunk)
      socket.uncork()
      return isRoomy || socket.writableLength === 0
    },
    end(body = '', closes = false) {
      if (!response.headersSent) headers.push('Content-Length', String(bytesOf(body)))
      writeHead(closes)
      finish(body, closes)
    },
    endWithoutBody(_reportedBytes, closes = false) {
      writeHead(closes)
      finish('', closes)
    },
    close() {
      socket.destroy()
      raw.abandon()
    },
    cork: (action) => action(),
    onData(take) {
      const length = Number(request.headers['content-length'] ?? -1)
      let taken = 0
      if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue()
      request.on('data', (chunk: Buffer) => {
        taken += chunk.length
        if (!isOver) take(copyOf(chunk), taken === length)
      })
      request.on('end', () => {
        if (!isOver && taken !== length) take(NOTHING, true)
      })
      request.on('error', () => {})
    },
    onAborted: (listener) => {
      onAborted = listener
    },
    onWritable: (listener) => response.on('drain', () => listener(0)),
    getRemoteAddress: () => addressOf(socket.remoteAddress),
    abandon() {
      const wasOver = isOver
      isOver = true
      if (!wasOver) onAborted?.()
      return !wasOver && !response.headersSent
    },
  }
  return raw
}

/** For what Node.js makes no request of. The connection closes with the answer. */
export function answerOnSocket(socket: Duplex): RawResponse {
  let head = 'HTTP/1.1 '
  const headers: string[] = []

  function end(body: string | Uint8Array = ''): void {
    const lines = [head, ...headers, `Content-Length: ${bytesOf(body)}`, 'Connection: close', '', '']
    socket.cork()
    socket.write(lines.join('\r\n'))
    socket.write(body)
    socket.uncork()
    ;(socket as Socket).destroySoon()
  }

  return {
    writeStatus: (status) => {
      head += status
    },
    writeHeader: (name, value) => headers.push(`${name}: ${value}`),
    write: () => true,
    end,
    endWithoutBody: () => end(),
    close: () => socket.destroy(),
    cork: (action) => action(),
    onData: () => {},
    onAborted: (listener) => socket.once('close', listener),
    onWritable: () => {},
    getRemoteAddress: () => addressOf((socket as Socket).remoteAddress),
  }
}
