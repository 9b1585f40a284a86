// The client of the fault tests: keep-alive requests whose failures are values, because a failure is half of what is tested.

import { type Agent, type IncomingHttpHeaders, request } from 'node:http'

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** No answer came: whether the server acted on the request cannot be known. */
export interface Unanswered {
  readonly status: 0
  readonly reason: string
}

export interface Request {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const ANSWER_MS_MAX = 30_000

export function call(agent: Agent, { method, url, headers, body }: Request): Promise<Answered | Unanswered> {
  return new Promise((resolve) => {
    const unanswered = (error: Error & { code?: string }) => resolve({ status: 0, reason: error.code ?? error.message })
    const sent = request(url, { agent, method, headers, timeout: ANSWER_MS_MAX }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', unanswered)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      })
    })
    sent.on('timeout', () => sent.destroy(new Error('timeout')))
    sent.on('error', unanswered)
    sent.end(body)
  })
}

/** A read with the secret key that must be answered with 200. */
export async function readJson<T>(agent: Agent, url: string, secret: string): Promise<T> {
  const answer = await call(agent, { method: 'GET', url, headers: { authorization: `Bearer ${secret}` } })
  if (answer.status !== 200) {
    throw new Error(`GET ${url} answered ${answer.status}: ${'text' in answer ? answer.text : answer.reason}`)
  }
  return JSON.parse(answer.text) as T
}
