// What can go wrong between a socket and a handler. The presenter turns each class into the body the API promises.

import { Told } from '../lib/failures.ts'

/** Another process holds the address. */
export class PortBusy extends Told {
  override readonly name = 'PortBusy'
  readonly host: string
  readonly port: number
  constructor(host: string, port: number) {
    super(`${host}:${port} is in use or cannot be bound`)
    this.host = host
    this.port = port
  }
}

/** The message could be read in two ways by two machines, so it is read in none. 400, the connection closes. */
export class BadFraming extends Error {
  override readonly name = 'BadFraming'
}

/** The sum of header names and values is above `headersBytesMax`. The connection closes. */
export class HeadersTooLarge extends Error {
  override readonly name = 'HeadersTooLarge'
}

/** The body is longer than the route takes. 413, the connection closes. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'
  readonly bodyBytesMax: number
  constructor(bodyBytesMax: number) {
    super(`the body is longer than ${bodyBytesMax} bytes`)
    this.bodyBytesMax = bodyBytesMax
  }
}

/** The route's time is over, whether the body was slow or the handler. 503 with Retry-After. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
  readonly retryAfterSeconds = 1
}

/** `inFlightMax` requests are being served already. 503 with Retry-After, the connection closes. */
export class TooManyInFlight extends Error {
  override readonly name = 'TooManyInFlight'
  readonly retryAfterSeconds = 1
}

/** No route has this path. 404. */
export class RouteUnknown extends Error {
  override readonly name = 'RouteUnknown'
}

/** The path exists with other methods; `allow` is the value of the Allow header. 405. */
export class MethodNotAllowed extends Error {
  override readonly name = 'MethodNotAllowed'
  readonly allow: string
  constructor(allow: string) {
    super(`allowed: ${allow}`)
    this.allow = allow
  }
}
