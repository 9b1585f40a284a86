// Spans of what this process does, for whoever brings an SDK of OpenTelemetry: a module that registers it is loaded in each thread.
// Without one there are no spans, and nobody asks for any.

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SpanContext } from '@opentelemetry/api'
import { readTrace, traceparentText } from '../domain/trace.ts'
import type { Clock } from './clock.ts'
import { Told } from './failures.ts'

type Attributes = Readonly<Record<string, string | number>>

export interface OpenSpan {
  /** The header of calls that belong to it. */
  readonly traceparent: string
  end(attributes: Attributes, failed: boolean): void
}

export interface Spans {
  /** `trace`: the caller's, as domain/trace.ts packs it; undefined: the span begins one. */
  begin(name: string, trace: string | undefined): OpenSpan
  /** What has just ended, and took `ms`. */
  ended(name: string, ms: number, attributes: Attributes, trace?: string): void
  /** Lets the SDK send what it still has. */
  close(): Promise<void>
}

/** The module that `tracing.sdk` names cannot be loaded. */
export class NoTracing extends Told {
  override readonly name = 'NoTracing'
}

/** null where `sdk`, a path, is empty. Throws NoTracing. */
export async function openSpans(sdk: string, clock: Pick<Clock, 'now'>): Promise<Spans | null> {
  if (sdk === '') return null
  let shutdown: unknown
  try {
    const module: { readonly shutdown?: unknown } = await import(pathToFileURL(resolve(sdk)).href)
    shutdown = module.shutdown
  } catch (cause) {
    throw new NoTracing(`tracing.sdk: ${sdk} cannot be loaded: ${(cause as Error).message}`, { cause })
  }
  const { ROOT_CONTEXT, SpanStatusCode, isSpanContextValid, trace } = await import('@opentelemetry/api')
  const tracer = trace.getTracer('fingerpost')
  const first = tracer.startSpan('fingerpost.start')
  // An SDK over an older API registers itself where a newer one does not look.
  if (!isSpanContextValid(first.spanContext())) {
    throw new NoTracing(`tracing.sdk: ${sdk} registers no SDK over @opentelemetry/api 1.10 or a later 1.x`)
  }
  first.end()
  const parentOf = (packed: string | undefined) =>
    packed === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(packed))
  return {
    begin(name, packed) {
      const span = tracer.startSpan(name, {}, parentOf(packed))
      const { traceId, spanId, traceFlags } = span.spanContext()
      return {
        traceparent: traceparentText(traceId, spanId, traceFlags.toString(16).padStart(2, '0')),
        end(attributes, failed) {
          span.setAttributes(attributes)
          if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
          span.end()
        },
      }
    },
    ended(name, ms, attributes, packed) {
      const now = clock.now()
      tracer.startSpan(name, { startTime: now - ms, attributes }, parentOf(packed)).end(now)
    },
    async close() {
      if (typeof shutdown === 'function') await shutdown()
    },
  }
}

function contextOf(packed: string): SpanContext {
  const { id: traceId, span: spanId, flags } = readTrace(packed)
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}
