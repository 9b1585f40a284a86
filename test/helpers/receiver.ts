// Receivers over TLS with an authority of their own, made at run time with openssl: they record what arrives and answer as told.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** What a receiver proves with who it is. */
export interface Leaf {
  readonly key: string
  readonly cert: string
}

export interface Authority {
  /** PEM, and the file it is in. */
  readonly ca: string
  readonly caFile: string
  leaf(names: string): Leaf
}

const SUBJECT = '/CN=Fingerpost test'

export function makeAuthority(t: Pick<Test, 'teardown'>): Authority {
  const dir = mkdtempSync(join(tmpdir(), 'fingerpost-ca-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return authorityIn(dir)
}

/** An authority whose files lie in a folder that is there and empty. */
export function authorityIn(dir: string): Authority {
  const file = (name: string) => join(dir, name)
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' })
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  run('req', '-x509', ...curve, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', SUBJECT)
  let made = 0
  return {
    ca: readFileSync(file('ca.pem'), 'utf8'),
    caFile: file('ca.pem'),
    leaf(names) {
      const name = `leaf${made++}`
      run('req', ...curve, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', SUBJECT)
      writeFileSync(file(`${name}.ext`), `subjectAltName=${names}\n`)
      const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2']
      run('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.pem`, ...signing, '-extfile', `${name}.ext`)
      return { key: readFileSync(file(`${name}.key`), 'utf8'), cert: readFileSync(file(`${name}.pem`), 'utf8') }
    },
  }
}

/** A connection is free again some turns of the event loop after its answer, however long the machine stands still meanwhile. */
export async function connectionsRest(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setTimeout(resolve, 10))
}

export interface Hit {
  readonly at: number
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type Behave = (request: IncomingMessage, response: ServerResponse, body: string) => void

export interface Receiver {
  readonly port: number
  readonly hits: Hit[]
  behave: Behave
}

export const answer =
  (status: number): Behave =>
  (_, response) =>
    response.writeHead(status).end()

/** On loopback, under any name. */
export async function openReceiver(t: Pick<Test, 'teardown'>, tls: Leaf): Promise<Receiver> {
  const hits: Hit[] = []
  const receiver: { behave: Behave } = { behave: answer(200) }
  const server = createServer(tls, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      hits.push({ at: Date.now(), path: request.url ?? '', headers: request.headers, body })
      receiver.behave(request, response, body)
    })
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
  })
  return Object.assign(receiver, { port: (server.address() as AddressInfo).port, hits })
}
