// What a driver of HTTP gives for each request, and what it takes: the shapes are those of uWebSockets.js, of which only this is used.

export interface RawRequest {
  /** Lower case. */
  getMethod(): string
  /** Without the query. */
  getUrl(): string
  /** undefined where there is no question mark. */
  getQuery(): string | undefined
  /** Names in lower case, in order of arrival. A value that is no text is ''. */
  forEach(visit: (name: string, value: string) => void): void
}

export interface RawResponse {
  writeStatus(status: string): unknown
  /** `value` may go on with further fields as they are sent, `\r\nName: value` each: one call costs less than one for each of them. */
  writeHeader(name: string, value: string): unknown
  /** False: the socket has not taken all, and `onWritable` is called when it has. */
  write(chunk: string | Uint8Array): boolean
  end(body?: string | Uint8Array, closes?: boolean): unknown
  endWithoutBody(reportedBytes?: number, closes?: boolean): unknown
  /** Drops the connection. */
  close(): unknown
  cork(action: () => void): unknown
  onData(take: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  /** Called once when the connection is gone before the answer is whole. */
  onAborted(listener: () => void): unknown
  onWritable(listener: (offset: number) => boolean): unknown
  getRemoteAddress(): ArrayBuffer
}

export interface Tls {
  readonly certFile: string
  readonly keyFile: string
}

/** Where a driver listens. */
export interface Place {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  /** Other threads of this process listen on the same port, and the system spreads connections over all. Default false. */
  readonly isShared?: boolean
  readonly tls?: Tls
}

/** What a driver calls, within the tick in which a request arrives. */
export interface Receiver {
  serve(raw: RawResponse, rawRequest: RawRequest): void
  /** Answers what cannot be served, as the route would that it is for: `rawRequest` says what is known of it, nothing as ''. */
  refuse(raw: RawResponse, fault: Error, rawRequest: RawRequest): void
}

export interface Listener {
  readonly port: number
  /** Takes no new connections; those open go on. */
  stopListening(): void
  /** Drops what is left. */
  close(): void
}

/** Fails with PortBusy when the place cannot be had. */
export type Listen = (place: Place, receiver: Receiver) => Promise<Listener>
