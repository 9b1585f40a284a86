// One attempt over the network: POST over a kept connection, under a deadline that counts everything from the name look-up to
// the status line, without redirects, with no more than a little of the answer read.

import { createRequire } from 'node:module'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { createSecureContext, rootCertificates } from 'node:tls'
import type Undici from 'undici'
import type { buildConnector, Dispatcher } from 'undici'
import type { Cancel } from '../lib/cancel.ts'
import type { Clock } from '../lib/clock.ts'
import { openTimeouts } from '../lib/timeouts.ts'
import { openConnections } from './connections.ts'
import { AttemptTimeout, attemptFailureOf, type FailureCode, HandshakeCut } from './failure.ts'
import { type AddressGuard, BlockedAddress } from './guard.ts'

export interface PosterConfig {
  readonly guard: AddressGuard
  readonly clock: Clock
  /** PEM certificates trusted besides the public authorities; '' for none. */
  readonly extraCa: string
  /** Default 10,000. */
  readonly deadlineMs?: number
}

export interface Posted {
  /** null: no answer came. */
  readonly statusCode: number | null
  /** null: a 2xx came in time. */
  readonly error: FailureCode | null
  /** To the status line, or to the failure. */
  readonly durationMs: number
}

export interface Poster {
  /** Whether another request to `origin` would not have to wait for connections that are being opened. */
  hasRoom(origin: string): boolean
  /** Never rejects. null: it was cancelled first, and whether anything arrived is not known. */
  post(url: URL, headers: Readonly<Record<string, string>>, body: Uint8Array, cancel: Cancel): Promise<Posted | null>
  close(): Promise<void>
}

const require = createRequire(import.meta.url)
const DEADLINE_MS = 10_000
/** Of the answer behind the status line: more is not waited for. */
const DRAIN_MS = 1_000
const DRAIN_BYTES_MAX = 16_384
const HEADER_BYTES_MAX = 16_384
const IDLE_MS = 30_000
/** A connection that was open already and breaks this soon had been closed by the receiver before. */
const STALE_MS = 1_000

class Cancelled extends Error {
  override readonly name = 'Cancelled'
}

export function openPoster({ guard, clock, extraCa, deadlineMs = DEADLINE_MS }: PosterConfig): Poster {
  const timeouts = openTimeouts(clock)
  // What is no certificate fails a start.
  let loaded = extraCa === '' ? null : load()
  const connections = openConnections(clock, (origin, onConnected) => {
    loaded ??= load()
    const { Client, connectTls } = loaded
    return new Client(origin, {
      connect: (options, callback) => connectChecked(connectTls, options, callback, onConnected),
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      headersTimeout: deadlineMs + DRAIN_MS,
      bodyTimeout: 2 * DRAIN_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      allowH2: false,
    })
  })

  /** With the first connection: most processes open none, and it would lengthen every start. */
  function load() {
    const { buildConnector, Client } = require('undici') as typeof Undici
    // Made once: reading all authorities for every connection would take longer than the handshake.
    const secureContext = createSecureContext({
      minVersion: 'TLSv1.2',
      ...(extraCa === '' ? {} : { ca: [...rootCertificates, extraCa] }),
    })
    const tls = { secureContext, rejectUnauthorized: true, allowH2: false, timeout: deadlineMs, lookup: lookUp }
    return { Client, connectTls: buildConnector(tls) }
  }

  /** Of literals nobody asks, which is why those are checked before a connection is begun. */
  function lookUp(...[hostname, options, callback]: Parameters<LookupFunction>): void {
    guard.addressesOf(hostname).then(
      (addresses) => {
        const found = addresses.map((address) => ({ address, family: isIP(address) }))
        if (options.all === true) callback(null, found)
        else callback(null, found[0]?.address ?? '', found[0]?.family)
      },
      (error) => callback(error, []),
    )
  }

  function connectChecked(
    connectTls: buildConnector.connector,
    options: buildConnector.Options,
    callback: buildConnector.Callback,
    onConnected: () => void,
  ): void {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    if (options.protocol !== 'https:' || (isIP(host) !== 0 && !guard.isAllowed(host))) {
      callback(new BlockedAddress('the address may not be connected to'), null)
      return
    }
    connectTls(options, (...[error, socket]) => {
      if (error !== null) return callback(cutOf(error), null)
      if (!guard.isAllowed((socket as Socket).remoteAddress ?? '')) {
        socket.destroy()
        return callback(new BlockedAddress('the address may not be connected to'), null)
      }
      onConnected()
      callback(null, socket)
    })
  }

  /** Calls `done` once: with null when it was cancelled, and whether the connection had been open before. */
  function attempt(request: Request, isFirst: boolean, done: (posted: Posted | null, wasOpen: boolean) => void): void {
    const { url, headers, body, cancel, startedAt } = request
    if (cancel.isCancelled) {
      done(null, false)
      return
    }
    const connection = connections.take(url.origin, !isFirst)
    let controller: Dispatcher.DispatchController | null = null
    let ended: Error | null = null
    let posted: Posted | null = null
    let received = 0
    let undoDeadline = timeouts.add(deadlineMs, () => end(new AttemptTimeout('no answer in time')))
    const stopWaiting = cancel.whenCancelled(() => end(new Cancelled('no longer wanted')))

    /** Before there is a connection there is nothing to abort: then the request is stopped as soon as it begins. */
    function end(reason: Error): void {
      if (ended !== null) return
      settle(reason)
      controller?.abort(reason)
    }

    function settle(thrown: unknown): void {
      if (ended !== null) return
      ended = thrown instanceof Error ? thrown : new Error('over')
      undoDeadline()
      stopWaiting()
      if (posted === null && !(thrown instanceof Cancelled)) {
        posted = { statusCode: null, error: attemptFailureOf(thrown), durationMs: clock.monotonic() - startedAt }
      }
      done(posted, connection.connectedAt < startedAt)
    }

    /** The connection is free first, so that whoever goes on at once finds it. */
    function over(thrown: unknown): void {
      connections.give(connection)
      settle(thrown)
    }

    connection.client.dispatch(
      // Nobody writes to the headers.
      { path: url.pathname + url.search, method: 'POST', headers: headers as Record<string, string>, body },
      {
        onRequestStart(started) {
          controller = started
          if (ended !== null) started.abort(ended)
        },
        onResponseStart(_, statusCode) {
          if (statusCode < 200 || ended !== null) return
          const error = statusCode < 300 ? null : 'http_status'
          posted = { statusCode, error, durationMs: clock.monotonic() - startedAt }
          undoDeadline()
          undoDeadline = timeouts.add(DRAIN_MS, () => end(new Error('the answer is too slow')))
        },
        onResponseData(_, chunk) {
          received += chunk.length
          if (received > DRAIN_BYTES_MAX) end(new Error('the answer is too long'))
        },
        onResponseEnd: () => over(null),
        onResponseError: (_, error) => over(error),
      },
    )
  }

  return {
    hasRoom: (origin) => connections.hasRoom(origin),
    post: (url, headers, body, cancel) =>
      new Promise((resolve) => {
        const startedAt = clock.monotonic()
        const request = { url, headers, body, cancel, startedAt }
        attempt(request, true, (posted, wasOpen) => {
          const isStale = wasOpen && posted !== null && isCut(posted) && posted.durationMs < STALE_MS
          if (isStale) attempt(request, false, resolve)
          else resolve(posted)
        })
      }),
    close: () => connections.close(),
  }
}

interface Request {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly cancel: Cancel
  readonly startedAt: number
}

const isCut = ({ statusCode, error }: Posted): boolean =>
  statusCode === null && (error === 'connect_reset' || error === 'closed_before_response')

/** A reset that is not of the connecting itself came while keys were exchanged. */
function cutOf(error: Error): Error {
  const { code, syscall } = error as NodeJS.ErrnoException
  return code === 'ECONNRESET' && syscall !== 'connect'
    ? new HandshakeCut('the connection was cut before it was encrypted', { cause: error })
    : error
}
