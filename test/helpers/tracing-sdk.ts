// What a team's SDK of OpenTelemetry is to the server: a module that registers a provider. This one writes each span that ended into
// SPANS_FILE, a line each, and says there when it was shut down.

import { appendFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'
import {
  type Context,
  type Span,
  type SpanContext,
  type SpanOptions,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'

const { SPANS_FILE = '' } = process.env
const write = (line: object) => appendFileSync(SPANS_FILE, `${JSON.stringify(line)}\n`)
let made = 0
const hex = (digits: number) => (++made + process.pid * 2 ** 20 + threadId * 2 ** 16).toString(16).padStart(digits, '0')

function startSpan(name: string, { startTime, attributes = {} }: SpanOptions = {}, context?: Context) {
  const parent = context === undefined ? undefined : trace.getSpanContext(context)
  const own: SpanContext = { traceId: parent?.traceId ?? hex(32), spanId: hex(16), traceFlags: 1 }
  const told: Record<string, unknown> = { ...attributes }
  return {
    spanContext: () => own,
    setAttributes: (more: object) => Object.assign(told, more),
    setStatus: ({ code }: { code: number }) => Object.assign(told, { code }),
    end: (endTime?: number) => write({ name, ...own, parent: parent?.spanId ?? null, startTime, endTime, ...told }),
  } as unknown as Span
}

trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) } as unknown as TracerProvider)

export const shutdown = async (): Promise<void> => write({ name: 'shutdown' })
