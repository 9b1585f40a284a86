// Requests that arrive in a thread which has no route for them: they go over a line to the thread that has, whose answer is written
// to the socket they came from.

import type { Line } from '../lib/line.ts'
import type { Serve } from './dispatch.ts'
import type { RawResponse } from './port.ts'

/** Names of casts. */
export const FORWARD = {
  request: 'http.request',
  data: 'http.data',
  aborted: 'http.aborted',
  taken: 'http.taken',
  answer: 'http.answer',
} as const

export interface ForwardedRequest {
  readonly id: number
  /** Lower case. */
  readonly method: string
  readonly url: string
  readonly query: string | undefined
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly address: ArrayBuffer
  readonly hasBody: boolean
}

export interface ForwardedData {
  readonly id: number
  readonly chunk: ArrayBuffer
  readonly isLast: boolean
}

/** One step of an answer; status and headers come with the first. */
export interface AnswerStep {
  readonly id: number
  readonly status: string | null
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | null
  /** `write`: more follows. `endWithoutBody`: nothing is said of a length. `drop`: the connection is closed instead. */
  readonly act: 'write' | 'end' | 'endWithoutBody' | 'drop'
  readonly closes: boolean
  /** What the client is told of a body that is not sent, as `endWithoutBody` of the server takes it. */
  readonly reportedBytes: number | undefined
}

const hasBody = (headers: readonly string[]): boolean => {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === 'transfer-encoding' || (headers[i] === 'content-length' && headers[i + 1] !== '0')) return true
  }
  return false
}

/** What a dispatch passes requests on to. */
export function openForward(line: Line): Serve {
  const sockets = new Map<number, RawResponse>()
  /** Bytes of each that the socket has not taken yet. */
  const untaken = new Map<number, number>()
  let ids = 0

  function forget(id: number): void {
    sockets.delete(id)
    untaken.delete(id)
  }

  function write(raw: RawResponse, { id, status, headers, body, act, closes, reportedBytes }: AnswerStep): void {
    if (status !== null) raw.writeStatus(status)
    for (let i = 0; i < headers.length; i += 2) raw.writeHeader(headers[i] as string, headers[i + 1] as string)
    if (act === 'write') {
      const bytes = body?.length ?? 0
      if (raw.write(body ?? '')) line.cast(FORWARD.taken, { id, bytes })
      else untaken.set(id, (untaken.get(id) ?? 0) + bytes)
      return
    }
    forget(id)
    if (act === 'end') raw.end(body ?? '', closes)
    // A length that is given, though undefined, is written as a second one.
    else if (reportedBytes === undefined && !closes) raw.endWithoutBody()
    else raw.endWithoutBody(reportedBytes, closes)
  }

  line.hear(FORWARD.answer, (step: AnswerStep) => {
    const raw = sockets.get(step.id)
    if (raw === undefined) return
    if (step.act === 'drop') {
      forget(step.id)
      raw.close()
    } else raw.cork(() => write(raw, step))
  })

  return (raw, rawRequest) => {
    ids += 1
    const id = ids
    const headers: string[] = []
    rawRequest.forEach((name, value) => void headers.push(name, value))
    sockets.set(id, raw)
    raw.onAborted(() => {
      if (sockets.has(id)) line.cast(FORWARD.aborted, id)
      forget(id)
    })
    raw.onWritable(() => {
      const bytes = untaken.get(id) ?? 0
      untaken.delete(id)
      if (bytes > 0) line.cast(FORWARD.taken, { id, bytes })
      return true
    })
    const request: ForwardedRequest = {
      id,
      headers,
      hasBody: hasBody(headers),
      method: rawRequest.getMethod(),
      url: rawRequest.getUrl(),
      query: rawRequest.getQuery(),
      address: raw.getRemoteAddress().slice(0),
    }
    line.cast(FORWARD.request, request)
    if (!request.hasBody) return
    raw.onData((received, isLast) => {
      const chunk = received.slice(0)
      if (sockets.has(id)) line.cast(FORWARD.data, { id, chunk, isLast } satisfies ForwardedData, [chunk])
    })
  }
}
