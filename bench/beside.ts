// `bench read --beside`: what large answers cost those who identify meanwhile. One client identifies, one request at a time; four
// others ask one question again and again, from a thread of their own.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { browserBody } from '../test/helpers/client.ts'
import type { Server } from '../test/helpers/server.ts'
import { atShare } from './measure.ts'

const READERS = 4
const RULES = 20
const VERSIONS = 60
const RATIO_MAX = 3

/** A rule about as long as a body may be. */
const bigRule = (n: number) => ({
  name: `Rule ${n}`,
  status: 'draft',
  conditions: {
    operator: 'OR',
    rules: Array.from({ length: 10 }, (_, i) => ({
      field: 'linkedId',
      operator: 'in',
      value: Array.from({ length: 90 }, (_, j) => `${n}-${i}-${j}-`.padEnd(250, 'x')),
    })),
  },
  action: { verdict: 'block' },
})

async function send(server: Server, method: string, path: string, body: unknown, key = server.keys.secret) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const response = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
  return JSON.parse(text)
}

async function prepare(server: Server): Promise<readonly string[]> {
  let id = ''
  for (let n = 0; n < RULES; n++) id = (await send(server, 'POST', '/v1/rules', bigRule(n))).id
  for (let n = 0; n < VERSIONS; n++) await send(server, 'PUT', `/v1/rules/${id}`, { name: `Version ${n}` })
  const device = browserBody()
  let visitorId = ''
  for (let n = 0; n < 300; n++) {
    const tag = { note: `${n}`.padEnd(4_000, 'x') }
    visitorId = (await send(server, 'POST', '/v1/identify', { ...device, tag })).visitorId
  }
  return [
    '/v1/audit?limit=100',
    `/v1/rules/${id}/versions?limit=100`,
    '/v1/rules?limit=100',
    `/v1/rules/${id}`,
    `/v1/visitors/${visitorId}/export`,
    '/v1/events?limit=100',
  ]
}

async function identified(server: Server, forMs: number): Promise<number[]> {
  const took: number[] = []
  const endMs = performance.now() + forMs
  const body = browserBody()
  while (performance.now() < endMs) {
    const startedAt = performance.now()
    await send(server, 'POST', '/v1/identify', body, server.keys.public)
    took.push(performance.now() - startedAt)
  }
  return took.sort((a, b) => a - b)
}

const at = (sorted: readonly number[], q: number) => atShare(sorted, q) ?? Number.NaN

/** Sets the exit code when a question costs those who identify more than three times their time. */
export async function besides(server: Server, forMs: number): Promise<void> {
  const paths = await prepare(server)
  await identified(server, forMs / 2)
  for (const path of paths) {
    const alone = await identified(server, forMs)
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { url: server.url + path, key: server.keys.secret },
    })
    const beside = await identified(server, forMs)
    worker.postMessage('stop')
    const { answers, bytes } = await new Promise<{ answers: number; bytes: number }>((resolve) =>
      worker.once('message', resolve),
    )
    const ratio = at(beside, 0.5) / at(alone, 0.5)
    console.log(
      `${READERS} × ${path.replace(/[a-z]+_\w+/, '…').padEnd(32)} ${(answers / (forMs / 1_000)).toFixed(0).padStart(5)}/s of ` +
        `${(bytes / answers / 1_024).toFixed(0).padStart(6)} KB  identify p50 ${at(alone, 0.5).toFixed(1)} → ${at(beside, 0.5).toFixed(1)} ms, ` +
        `p99 ${at(alone, 0.99).toFixed(1)} → ${at(beside, 0.99).toFixed(1)} ms, × ${ratio.toFixed(1)} ${ratio <= RATIO_MAX ? 'kept' : 'MISSED'}`,
    )
    if (ratio > RATIO_MAX) process.exitCode = 1
  }
}

async function read(): Promise<void> {
  const { url, key } = workerData as { readonly url: string; readonly key: string }
  let isOver = false
  let bytes = 0
  let answers = 0
  parentPort?.once('message', () => {
    isOver = true
  })
  async function reader(): Promise<void> {
    while (!isOver) {
      const response = await fetch(url, { headers: { Authorization: `Bearer ${key}` } })
      const body = await response.arrayBuffer()
      if (response.status === 429) await new Promise((resolve) => setTimeout(resolve, 100))
      else if (!response.ok) throw new Error(`${url}: ${response.status}`)
      bytes += body.byteLength
      answers++
    }
  }
  await Promise.all(Array.from({ length: READERS }, reader))
  parentPort?.postMessage({ answers, bytes })
}

if (!isMainThread) await read()
