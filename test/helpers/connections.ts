// Many connections to one server, each kept open and used for one request after the other: the system spreads them over the threads that
// listen, so that what is asked over all of them has been asked of each thread.

import { Agent, request as ask, type IncomingMessage } from 'node:http'

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export interface Asked {
  readonly key?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Connections {
  readonly agents: readonly Agent[]
  over(agent: Agent, method: string, path: string, asked?: Asked): Promise<Answered>
  /** Over each in turn, so that no limit of requests at once is met. */
  overEach(method: string, path: string, asked?: Asked): Promise<Answered[]>
  close(): void
}

/** `standardKey`: of whoever names none. */
export function openConnections(port: number, count: number, standardKey: string): Connections {
  const agents = Array.from({ length: count }, () => new Agent({ keepAlive: true, maxSockets: 1 }))

  async function over(
    agent: Agent,
    method: string,
    path: string,
    { key = standardKey, body, headers }: Asked = {},
  ): Promise<Answered> {
    const call = ask({
      agent,
      port,
      host: '127.0.0.1',
      method,
      path,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body === undefined
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
        ...headers,
      },
    })
    call.end(body)
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      call.once('response', resolve)
      call.once('error', reject)
    })
    let text = ''
    for await (const chunk of answer.setEncoding('utf8')) text += chunk
    return { status: answer.statusCode ?? 0, headers: answer.headers, text }
  }

  return {
    agents,
    over,
    async overEach(method, path, asked) {
      const answers: Answered[] = []
      for (const agent of agents) answers.push(await over(agent, method, path, asked))
      return answers
    },
    close() {
      for (const agent of agents) agent.destroy()
    },
  }
}

/** Without what differs from one call to the next. */
export function comparable({ status, headers, text }: Answered): string {
  const { date: _, 'x-request-id': id, 'x-ratelimit-remaining': _left, 'x-ratelimit-reset': _reset, ...rest } = headers
  return JSON.stringify([status, rest, typeof id === 'string' ? text.replaceAll(id, 'ID') : text])
}
