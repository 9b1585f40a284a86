// The other side of forward.ts: requests that arrived in other threads, served by a dispatch of this one as if they had come over a
// socket of its own.

import type { Line } from '../lib/line.ts'
import type { Serve } from './dispatch.ts'
import { type AnswerStep, FORWARD, type ForwardedData, type ForwardedRequest } from './forward.ts'
import type { RawRequest, RawResponse } from './port.ts'

/** Bytes on their way to a socket above which it counts as full. */
const UNTAKEN_BYTES_MAX = 65_536

interface Remote {
  readonly raw: RawResponse
  data(chunk: ArrayBuffer, isLast: boolean): void
  aborted(): void
  taken(bytes: number): void
}

function openRemote(line: Line, { id, address }: ForwardedRequest, forget: () => void): Remote {
  let status: string | null = null
  let headers: string[] = []
  let untakenBytes = 0
  let onData: ((chunk: ArrayBuffer, isLast: boolean) => void) | null = null
  let onAborted: (() => void) | null = null
  let onWritable: ((offset: number) => boolean) | null = null

  function send(step: Pick<AnswerStep, 'body' | 'act'> & Partial<AnswerStep>): void {
    line.cast(FORWARD.answer, { id, status, headers, closes: false, reportedBytes: undefined, ...step })
    status = null
    headers = []
    if (step.act !== 'write') forget()
  }

  const raw = {
    writeStatus(text: string) {
      status = text
      return raw
    },
    writeHeader(name: string, value: string) {
      headers.push(name, value)
      return raw
    },
    write(body: string | Uint8Array) {
      untakenBytes += body.length
      send({ body, act: 'write' })
      return untakenBytes < UNTAKEN_BYTES_MAX
    },
    end(body: string | Uint8Array = '', closes = false) {
      send({ body, act: 'end', closes })
      return raw
    },
    endWithoutBody(reportedBytes?: number, closes = false) {
      send({ body: null, act: 'endWithoutBody', closes, reportedBytes })
      return raw
    },
    close() {
      send({ body: null, act: 'drop' })
      onAborted?.()
      return raw
    },
    cork(action: () => void) {
      action()
      return raw
    },
    onData(take: (chunk: ArrayBuffer, isLast: boolean) => void) {
      onData = take
      return raw
    },
    onAborted(listener: () => void) {
      onAborted = listener
      return raw
    },
    onWritable(listener: (offset: number) => boolean) {
      onWritable = listener
      return raw
    },
    getRemoteAddress: () => address,
  }

  return {
    raw: raw as unknown as RawResponse,
    data: (chunk, isLast) => onData?.(chunk, isLast),
    aborted: () => onAborted?.(),
    taken(bytes) {
      const wasFull = untakenBytes >= UNTAKEN_BYTES_MAX
      untakenBytes -= bytes
      if (wasFull && untakenBytes < UNTAKEN_BYTES_MAX) onWritable?.(0)
    },
  }
}

function requestOf({ method, url, query, headers }: ForwardedRequest): RawRequest {
  const request = {
    getMethod: () => method,
    getUrl: () => url,
    getQuery: () => query,
    forEach(visit: (name: string, value: string) => void) {
      for (let i = 0; i < headers.length; i += 2) visit(headers[i] as string, headers[i + 1] as string)
    },
  }
  return request as unknown as RawRequest
}

/** Serves what comes over the line. Returns what to call when its other end is gone. */
export function serveForwarded(line: Line, serve: Serve): () => void {
  const remotes = new Map<number, Remote>()

  line.hear(FORWARD.request, (request: ForwardedRequest) => {
    const remote = openRemote(line, request, () => void remotes.delete(request.id))
    remotes.set(request.id, remote)
    serve(remote.raw, requestOf(request))
  })
  line.hear(FORWARD.data, ({ id, chunk, isLast }: ForwardedData) => remotes.get(id)?.data(chunk, isLast))
  line.hear(FORWARD.aborted, (id: number) => {
    const remote = remotes.get(id)
    remotes.delete(id)
    remote?.aborted()
  })
  line.hear(FORWARD.taken, ({ id, bytes }: { id: number; bytes: number }) => remotes.get(id)?.taken(bytes))

  return () => {
    const left = [...remotes.values()]
    remotes.clear()
    for (const remote of left) remote.aborted()
  }
}
