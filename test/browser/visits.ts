// A page of a customer that identifies by itself as soon as it is open and tells its own server what came of it.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Server } from '../helpers/server.ts'

export type Visit = {
  requestId: string
  visitorId: string
  visitorFound: boolean
  confidence: number
  /** Whether the page had a token before. */
  hadToken: boolean
  // biome-ignore lint/suspicious/noExplicitAny: components are looked into by name
  components: Record<string, any>
}

// biome-ignore lint/suspicious/noExplicitAny: the public form of an event, read member by member
export type Seen = Visit & { event: any }

export type Site = {
  /** The address to open for a visit of that name. */
  urlOf(name: string): string
  /** Waits until the page opened under that name has told, and reads the event. */
  seen(name: string): Promise<Seen>
  close(): Promise<void>
}

const visitMsMax = 90_000

const page = (service: string, publicKey: string) => `<!doctype html><title>Shop</title><body><p>Welcome</p>
<script src="${service}/sdk.js"></script>
<script>
  const told = (value) => fetch('/told' + location.search, { method: 'POST', body: JSON.stringify(value) })
  const hadToken = localStorage.getItem('fingerpost_live') !== null
  const client = Fingerpost.load({ publicKey: '${publicKey}', endpoint: '${service}', budgetMs: 20000 })
  client.get().then(
    async (answer) => told({ ...answer, hadToken, components: await client.components() }),
    (error) => told({ failed: String(error && error.message) }),
  )
</script>`

export async function openSite(server: Server): Promise<Site> {
  const waiting = new Map<string, (told: unknown) => void>()
  const html = page(server.url, server.keys.public)
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    if (request.method === 'POST' && url.pathname === '/told') {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      waiting.get(url.searchParams.get('visit') ?? '')?.(JSON.parse(Buffer.concat(chunks).toString()))
      response.writeHead(204).end()
    } else if (url.pathname === '/') {
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(html)
    } else {
      response.writeHead(404).end()
    }
  }
  const own = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(own.address() as AddressInfo).port}`

  return {
    urlOf: (name) => `${origin}/?visit=${encodeURIComponent(name)}`,
    async seen(name) {
      const told = await new Promise<Visit | { failed: string }>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${name}: the page told nothing`)), visitMsMax)
        waiting.set(name, (value) => {
          clearTimeout(timer)
          resolve(value as Visit)
        })
      })
      waiting.delete(name)
      if ('failed' in told) throw new Error(`${name}: ${told.failed}`)
      const response = await fetch(`${server.url}/v1/events/${told.requestId}`, {
        headers: { Authorization: `Bearer ${server.keys.secret}` },
      })
      if (response.status !== 200) throw new Error(`${name}: event answered ${response.status}`)
      return { ...told, event: await response.json() }
    },
    close: () =>
      new Promise((resolve) => {
        own.close(() => resolve())
        own.closeAllConnections()
      }),
  }
}
