// One event of a stream of server-sent events (HTML standard, 9.2.6).

export interface ServerEvent {
  readonly event: string
  readonly data: string
}

/** null: a comment, which keeps the connection open. */
export function parseServerEvent(text: string): ServerEvent | null {
  let event = 'message'
  const data: string[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('event:')) event = line.slice('event:'.length).trim()
    if (line.startsWith('data:')) data.push(line.slice('data:'.length).trimStart())
  }
  return data.length === 0 ? null : { event, data: data.join('\n') }
}
