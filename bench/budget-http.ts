// A request of `bench budget` without a socket: what our own code spends between the server's callbacks and its handler, and on the
// answer. The stand-ins do nothing, so the server's own part is not in the figure.

import { callHeaders } from '../src/api/present.ts'
import { EVIDENCE_HEADERS } from '../src/domain/identify.ts'
import { lineOf } from '../src/domain/ip.ts'
import { openExchanges } from '../src/http/exchange.ts'
import { wantedHeaders } from '../src/http/framing.ts'
import type { Answer } from '../src/http/message.ts'
import type { RawRequest, RawResponse } from '../src/http/port.ts'
import type { Route } from '../src/http/request.ts'
import { openPresenter } from '../src/http/write.ts'
import { systemClock } from '../src/lib/clock.ts'
import { newCounts } from '../src/lib/counts.ts'
import { openMetrics } from '../src/lib/metrics.ts'
import { openRandom } from '../src/lib/random.ts'
import type { BudgetVisit } from './budget-visits.ts'

const PATTERN = '/v1/identify'
const WANTED = [...EVIDENCE_HEADERS, 'authorization', 'content-encoding', 'content-type', 'origin', 'x-forwarded-for']
const BODY_BYTES_MAX = 65_536
const DEADLINE_MS = 5_000
const NO_PARAMETERS = {}
const ANSWER_HEADERS: readonly (readonly [string, string])[] = [['Cache-Control', 'no-store']]

/** The returned function takes a visit in and answers it later than its body came, as the decision does. */
export function openRequests(): (visit: BudgetVisit, body: string) => void {
  const log = { warn() {}, error() {} }
  const exchanges = openExchanges({
    clock: systemClock,
    log,
    presenter: openPresenter(() => ({ status: 500 }), callHeaders(systemClock, openRandom()), log),
    observe: openMetrics(null).observeRequest,
    headersBytesMax: 16_384,
    inFlightCounts: newCounts(1),
    inFlightMax: 1_000,
    perHost: { max: 100, hostOf: lineOf },
  })
  const waiting: { answer?: Answer } = {}
  const route: Route = {
    pattern: PATTERN,
    handler: (_request, given) => {
      waiting.answer = given
      return undefined
    },
    before: (request) => {
      request.remoteAddress()
      return null
    },
    wanted: wantedHeaders(WANTED),
    bodyBytesMax: BODY_BYTES_MAX,
    borrowBody: false,
    deadlineMs: DEADLINE_MS,
    deadlines: exchanges.deadlines.queue(DEADLINE_MS),
    responseHeaders: [
      ['Access-Control-Allow-Origin', '*'],
      ['Access-Control-Expose-Headers', 'Retry-After, Idempotent-Replayed, X-Request-Id'],
    ],
  }

  // One of each for all requests: what stands in for a socket is not to be in the figure.
  const told: { visit: BudgetVisit | null; data: (chunk: ArrayBuffer, isLast: boolean) => void } = {
    visit: null,
    data: () => undefined,
  }
  const raw = {
    onAborted: () => raw,
    onData: (listener: typeof told.data) => {
      told.data = listener
      return raw
    },
    getRemoteAddress: () => told.visit?.peer,
    cork: (write: () => void) => {
      write()
      return raw
    },
    writeHeader: () => raw,
    end: () => raw,
  } as unknown as RawResponse
  const rawRequest = {
    getQuery: () => 'key=pk_bench',
    forEach: (visitHeader: (name: string, value: string) => void) => {
      for (const [name, value] of told.visit?.headers ?? []) visitHeader(name, value)
    },
  } as unknown as RawRequest

  return (visit, body) => {
    told.visit = visit
    exchanges.serve(raw, rawRequest, route, 'POST', PATTERN, NO_PARAMETERS)
    told.data(visit.bytes.buffer as ArrayBuffer, true)
    waiting.answer?.({ status: 200, body, headers: ANSWER_HEADERS })
  }
}
