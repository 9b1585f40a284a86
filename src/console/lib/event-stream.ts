// Reads server-sent events with fetch, which unlike EventSource can send the headers of a session (HTML standard, 9.2).

import { type Query, request } from './api.ts'
import { parseServerEvent, type ServerEvent } from './event-text.ts'

/** Calls `on` for each; resolves when the server ends the stream. Throws RefusedError, or what `signal` was aborted with. */
export async function readEventStream(
  path: string,
  query: Query,
  signal: AbortSignal,
  on: (event: ServerEvent) => void,
  opened: () => void,
): Promise<void> {
  const answer = await request(path, { query, signal }, { Accept: 'text/event-stream' })
  opened()
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    const parts = (rest + read.value).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const event = parseServerEvent(part)
      if (event !== null) on(event)
    }
  }
}
