// A stand-in for the service: serves the built SDK and small pages, records identify bodies and answers as scripted.

import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const root = new URL('../../../', import.meta.url)
export const strictPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; worker-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export type Recorded = {
  path: string
  contentType: string | undefined
  cookie: string | undefined
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: bodies are checked member by member in the tests
  body: any
  atMs: number
}

/** `drop` closes the connection without an answer, `hang` never answers; an answer that is held comes after `until`. */
export type Reply =
  | { status: number; headers?: Record<string, string>; body?: unknown; until?: Promise<unknown> }
  | 'drop'
  | 'hang'

export type FakeService = {
  url: string
  port: number
  bodies: Recorded[]
  /** Requests with a method other than GET and POST, in order: preflights show up here. */
  preflights: string[]
  violations: string[]
  /** Answers for the next identifications; when none is left, `defaultReply`. */
  replies: Reply[]
  defaultReply: Reply
  /** As it was when it began. */
  forget(): void
  close(): Promise<void>
}

export function found(storageToken?: string): Reply {
  const body = {
    requestId: 'req_01KAKAKAKAKAKAKAKAKAKAKAKA',
    visitorId: 'pv_abcdefghij0123456789',
    visitorFound: true,
    confidence: 0.995,
    firstSeenAt: '2026-11-01T10:00:00.000Z',
    lastSeenAt: '2026-11-19T08:30:00.000Z',
    timestamp: '2026-11-20T12:00:00.000Z',
  }
  return { status: 200, body: storageToken ? { ...body, storageToken } : body }
}

const pages: Record<string, { html: string; policy?: string }> = {
  '/plain': { html: '<!doctype html><title>plain</title><body><script src="/sdk.js"></script>' },
  '/module': {
    html: '<!doctype html><title>module</title><body><script type="module">import * as sdk from "/sdk.mjs"; window.Fingerpost = sdk</script>',
  },
  '/strict': {
    html: '<!doctype html><title>strict</title><body><script src="/sdk.js"></script>',
    policy: `${strictPolicy}; report-uri /violations`,
  },
  '/trusted': {
    html: '<!doctype html><title>trusted</title><body><script src="/sdk.js"></script>',
    policy: `${strictPolicy}; require-trusted-types-for 'script'; trusted-types fingerpost; report-uri /violations`,
  },
  '/no-workers': {
    html: '<!doctype html><title>no workers</title><body><script src="/sdk.js"></script>',
    policy: "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'none'",
  },
  '/sandboxed': {
    html: '<!doctype html><title>sandboxed</title><body><script src="/sdk.js"></script>',
    policy: 'sandbox allow-scripts',
  },
}

export async function startFakeService(): Promise<FakeService> {
  const service = {} as FakeService
  service.forget = () => {
    Object.assign(service, { bodies: [], preflights: [], violations: [], replies: [], defaultReply: found() })
  }
  service.forget()
  const server = createServer((request, response) => {
    handle(service, request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  service.port = (server.address() as AddressInfo).port
  service.url = `http://127.0.0.1:${service.port}`
  service.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return service
}

async function handle(service: FakeService, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = new URL(request.url ?? '/', service.url).pathname
  if (request.method === 'POST' && path === '/v1/identify') return identify(service, request, response)
  if (request.method === 'POST' && path === '/v1/identify/forget') {
    const headers = { 'Access-Control-Allow-Origin': '*', 'Set-Cookie': 'fp_test=; Path=/; Max-Age=0; HttpOnly' }
    response.writeHead(204, headers).end()
    return
  }
  if (request.method === 'POST' && path === '/violations') {
    service.violations.push(await readText(request))
    response.writeHead(204).end()
    return
  }
  if (request.method !== 'GET') {
    service.preflights.push(`${request.method} ${path}`)
    response.writeHead(405).end()
    return
  }
  const other = /^\/other-origin\/(\d+)$/.exec(path)
  if (other) {
    sendPage(response, {
      html: `<!doctype html><title>other</title><body><script src="http://localhost:${other[1]}/sdk.js"></script>`,
    })
  } else if (pages[path]) {
    sendPage(response, pages[path])
  } else {
    await sendFile(response, path)
  }
}

async function identify(service: FakeService, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = await readText(request)
  service.bodies.push({
    path: request.url ?? '',
    contentType: request.headers['content-type'],
    cookie: request.headers.cookie,
    text,
    body: JSON.parse(text),
    atMs: performance.now(),
  })
  const reply = service.replies.shift() ?? service.defaultReply
  if (reply === 'hang') return
  if (reply === 'drop') {
    request.socket.destroy()
    return
  }
  await reply.until
  response.writeHead(reply.status, {
    'Content-Type': 'application/json',
    'Access-Control-Allow-Origin': '*',
    ...reply.headers,
  })
  response.end(reply.body === undefined ? '' : JSON.stringify(reply.body))
}

function sendPage(response: ServerResponse, page: { html: string; policy?: string }): void {
  const headers: Record<string, string> = { 'Content-Type': 'text/html; charset=utf-8' }
  if (page.policy) headers['Content-Security-Policy'] = page.policy
  response.writeHead(200, headers).end(page.html)
}

const types: Record<string, string> = {
  js: 'text/javascript',
  mjs: 'text/javascript',
  css: 'text/css',
  html: 'text/html',
}

async function sendFile(response: ServerResponse, path: string): Promise<void> {
  const name = path === '/demo' || path === '/demo/' ? '/demo/index.html' : path
  const known = /^\/(sdk\.js|sdk\.mjs|demo\/(index\.html|demo\.css|demo\.js))$/.test(name)
  const file = known ? await readFile(new URL(`build/sdk${name}`, root)) : null
  if (!file) {
    response.writeHead(404).end()
    return
  }
  const headers: Record<string, string> = { 'Content-Type': `${types[name.split('.').at(-1) ?? '']}; charset=utf-8` }
  if (name.startsWith('/demo/')) headers['Content-Security-Policy'] = `${strictPolicy}; report-uri /violations`
  response.writeHead(200, headers).end(file)
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
