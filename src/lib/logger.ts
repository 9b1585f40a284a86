// Structured logs on stdout through pino. Never a line per identification, never a key, an email or a full address.

import pino from 'pino'
import { Unavailable } from './failures.ts'

export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export function openLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    // Enough of an error to act upon; its own properties may hold data of clients.
    serializers: { error: (error: unknown) => describe(error) },
    hooks: { streamWrite: escapeControls },
  })
}

// JSON escapes the controls of ASCII only; terminals obey those above as well.
const CONTROLS = /[\u007f-\u009f\u2028\u2029]/g
const escapeControls = (line: string): string =>
  line.replace(CONTROLS, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Of what is foreseen, such as a server that does not answer, and of its causes the place in the code helps nobody. */
function describe(error: unknown, isForeseen = error instanceof Unavailable): unknown {
  if (!(error instanceof Error)) return String(error)
  return {
    name: error.name,
    message: error.message,
    ...(isForeseen ? {} : { stack: error.stack }),
    ...(error.cause ? { cause: describe(error.cause, isForeseen) } : {}),
  }
}
