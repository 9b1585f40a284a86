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

const READ_MS_MAX = 30_000
const RETRY_MS = 100

/** A GET, repeated while there is no answer (an idle connection may just be closing) or 503. */
export async function read(agent: Agent, url: string, headers: Readonly<Record<string, string>>): Promise<Answered> {
  const deadline = performance.now() + READ_MS_MAX
  for (;;) {
    const answer = await call(agent, { method: 'GET', url, headers })
    if ('text' in answer && answer.status !== 503) return answer
    if (performance.now() > deadline) throw new Error(`GET ${url}: ${'text' in answer ? answer.text : answer.reason}`)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

/** A read with the secret key that must be answered with 200. */
export async function readJson<T>(agent: Agent, url: string, secret: string): Promise<T> {
  const answer = await read(agent, url, { authorization: `Bearer ${secret}` })
  if (answer.status !== 200) throw new Error(`GET ${url} answered ${answer.status}: ${answer.text}`)
  return JSON.parse(answer.text) as T
}
