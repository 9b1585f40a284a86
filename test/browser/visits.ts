// A page of a customer that identifies by itself as soon as it is open, tells its own server what came of it, and stays open
// until it is sent to the next visit.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Tenant } from '../helpers/tenant.ts'

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
  /** Sends the page of the visit `from` on to the visit `to`; `emptied`: by way of having its storage cleared. */
  sendOn(from: string, to: string, emptied: boolean): void
  readonly origin: string
  /** Waits until the page opened under that name has told, and reads the event. */
  seen(name: string): Promise<Seen>
  close(): Promise<void>
}

type Exit = { path: Promise<string>; open(path: string): void }

const pathOf = (name: string, page = '/') => `${page}?visit=${encodeURIComponent(name)}`

const visitMsMax = 240_000

const page = (service: string, publicKey: string) => `<!doctype html><title>Shop</title><body><p>Welcome</p>
<script src="${service}/sdk.js"></script>
<script>
  const told = (value) => fetch('/told' + location.search, { method: 'POST', body: JSON.stringify(value) })
  const hadToken = localStorage.getItem('fingerpost_live') !== null
  const client = Fingerpost.load({ publicKey: '${publicKey}', endpoint: '${service}', budgetMs: 20000 })
  client.get().then(
    async (answer) => told({ ...answer, hadToken, components: await client.components() }),
    (error) => told({ failed: String(error && error.message) }),
  ).then(() => fetch('/next' + location.search)).then((next) => next.text()).then((next) => location.assign(next))
</script>`

/** The browser clears what pages of this address have stored, when it gets to it: the page waits until it sees nothing any more. */
const emptied = (next: string) => `<!doctype html><title>Shop</title><body><p>Goodbye</p>
<script>
  const look = async () => {
    const databases = await indexedDB.databases()
    if (localStorage.length + document.cookie.length + databases.length === 0) location.replace(${JSON.stringify(next)})
    else setTimeout(look, 50)
  }
  look()
</script>`

export async function openSite(server: Pick<Tenant, 'url' | 'keys'>): Promise<Site> {
  const waiting = new Map<string, (told: unknown) => void>()
  const html = page(server.url, server.keys.public)
  const send = (response: ServerResponse, text: string, headers: Readonly<Record<string, string>> = {}) =>
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', ...headers }).end(text)
  const exits = new Map<string, Exit>()
  function exitOf(name: string): Exit {
    const known = exits.get(name)
    if (known) return known
    const exit = {} as Exit
    exit.path = new Promise((resolve) => {
      exit.open = resolve
    })
    exits.set(name, exit)
    return exit
  }
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    const name = url.searchParams.get('visit') ?? ''
    if (request.method === 'POST' && url.pathname === '/told') {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      waiting.get(name)?.(JSON.parse(Buffer.concat(chunks).toString()))
      response.writeHead(204).end()
    } else if (url.pathname === '/') {
      send(response, html)
    } else if (url.pathname === '/next') {
      send(response, await exitOf(name).path)
    } else if (url.pathname === '/emptied') {
      send(response, emptied(pathOf(name)), { 'Clear-Site-Data': '"cookies", "storage"' })
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
    origin,
    urlOf: (name) => origin + pathOf(name),
    sendOn: (from, to, emptied) => exitOf(from).open(pathOf(to, emptied ? '/emptied' : '/')),
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
