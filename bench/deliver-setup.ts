// What the benchmarks of deliveries share: receivers in a process of their own, a kv on disk, what makes attempts, made-up webhooks and a
// sender for them, which may be of another process than the receivers were started by.

import { execFileSync, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLocalBus } from '../src/bus/local.ts'
import { openAttempts } from '../src/dispatcher/attempt.ts'
import { openAddressGuard } from '../src/dispatcher/guard.ts'
import { openPoster } from '../src/dispatcher/post.ts'
import { openSender, type Sender } from '../src/dispatcher/sender.ts'
import type { Subscriptions, Tenant } from '../src/dispatcher/subscriptions.ts'
import { parseCidr } from '../src/domain/ip.ts'
import { typesOf } from '../src/domain/webhook.ts'
import type { Kv } from '../src/kv/kv.ts'
import { openKv } from '../src/kv/open.ts'
import { systemClock as clock } from '../src/lib/clock.ts'
import { must } from '../src/lib/must.ts'
import { openSealer } from '../src/lib/sealed.ts'
import { SHARDS } from '../src/records/deliveries.ts'
import type { StoredWebhook } from '../src/records/webhooks.ts'

/** Since it was asked last. Ages are milliseconds since the event's `createdAt`. */
export interface Received {
  readonly hits: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly last: number
}

export const say = (line: string) => process.stdout.write(`${line}\n`)
export const busy = () => `load of the machine ${loadavg()[0]?.toFixed(1)}`

/** Microseconds of CPU of this process, receivers not counted: tells more than a rate where others use the machine too. */
export function cpuEach(since: NodeJS.CpuUsage, count: number): number {
  const { user, system } = process.cpuUsage(since)
  return Math.round((user + system) / Math.max(1, count))
}

/** What outlives a process that sends: the folder of its kv, the receivers, and what deliveries are signed with. */
export interface Place {
  readonly dir: string
  readonly port: number
  readonly ca: string
  readonly secret: string
  readonly sealingKey: string
}

const random = (n: number) => randomBytes(n)

export async function openReceivers() {
  const dir = mkdtempSync(join(tmpdir(), 'fingerpost-deliver-'))
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=bench']
  const own = ['-keyout', 'leaf.key', '-out', 'leaf.pem', '-days', '2', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', ['req', '-x509', ...curve, ...own], { cwd: dir, stdio: 'pipe' })
  const [key, cert] = [join(dir, 'leaf.key'), join(dir, 'leaf.pem')]
  const receiver = fork(new URL('./deliver-receiver.js', import.meta.url), [key, cert])
  const [{ port }] = (await once(receiver, 'message')) as [{ port: number }]
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const place: Place = { dir, port, ca: readFileSync(cert, 'utf8'), secret, sealingKey: random(32).toString('hex') }
  return {
    place,
    async received(): Promise<Received> {
      receiver.send('tell')
      return ((await once(receiver, 'message')) as [Received])[0]
    },
    close() {
      receiver.kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
export type Receivers = Awaited<ReturnType<typeof openReceivers>>

export async function openSending({ dir, port, ca, secret, sealingKey }: Place) {
  const guard = openAddressGuard([must(parseCidr('127.0.0.0/8'))], async () => ['127.0.0.1'])
  const poster = openPoster({ guard, clock, extraCa: ca })
  const kv = await openKv({ backend: 'lmdb', dataDir: dir, clock, durability: 'fsync' })
  const bus = openLocalBus({ onError: (error) => say(String(error)) })
  const sealer = openSealer(Buffer.from(sealingKey, 'hex'), random)
  const attempts = openAttempts({ poster, sealer, clock, userAgent: 'bench' })

  function webhook(name: string, n: number, path: string): StoredWebhook {
    const id = `wh_${name}${String(n).padStart(6, '0')}`
    const secrets = [{ sealed: sealer.seal(secret, id), createdAt: 0, expiresAt: null }]
    return {
      id,
      shape: 'B',
      url: `https://localhost:${port}/${path}/${n}`,
      events: ['*'],
      filters: null,
      description: null,
      status: 'active',
      disabledReason: null,
      secrets,
      createdAt: 0,
      updatedAt: 0,
      enabledAt: 0,
      version: 1,
    }
  }

  function tenantOf(webhooks: readonly StoredWebhook[]): Tenant {
    const workspace = { id: 'ws_bench', plan: 'enterprise', apiVersion: '2026-11-01' } as Tenant['workspace']
    const types = typesOf(['*'])
    const subscriptions = new Map(webhooks.map((one) => [one.id, { webhook: one, types }]))
    return { workspace, env: 'live', revision: 1, types, subscriptions }
  }

  function startSender(
    webhooks: readonly StoredWebhook[],
    ownKv: Kv = kv,
  ): { readonly sender: Sender; stop(): Promise<unknown> } {
    const all = tenantOf(webhooks)
    const subscriptions: Subscriptions = { disabledCount: () => 0, tenant: async () => all }
    const report = {
      attempted() {},
      ended() {},
      overflowed() {},
      failing() {},
      inFlight() {},
      failed: (error: unknown) => say(String(error)),
    }
    const log = { append: async () => 0 }
    const sender = openSender({
      ...{
        log,
        kv: ownKv,
        bus,
        clock,
        random,
        attempts,
        subscriptions,
        inFlightMax: 1_024,
        backlogMax: 1_000_000,
        report,
      },
    })
    const stopping = new AbortController()
    setMaxListeners(0, stopping.signal)
    const over = Promise.all(Array.from({ length: SHARDS }, (_, shard) => sender.hold(shard, stopping.signal)))
    return {
      sender,
      stop() {
        stopping.abort()
        return over
      },
    }
  }

  return {
    kv,
    bus,
    poster,
    webhook,
    tenantOf,
    startSender,
    async close() {
      await poster.close()
      // What is still to be said of receivers that hang is not worth waiting for.
      await clock.sleep(500)
      await kv.close()
    },
  }
}
export type Sending = Awaited<ReturnType<typeof openSending>>
export type DeliverBench = Sending & Pick<Receivers, 'place' | 'received'>
