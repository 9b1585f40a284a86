// The process of `bench deliver retries` that sends: opens the kv as another one left it, and tells its memory and CPU when it knows of
// every webhook when something is due next, and again when it is asked.

import { readFileSync } from 'node:fs'
import type { Kv } from '../src/kv/kv.ts'
import { DUE } from '../src/records/deliveries.ts'
import { openSending, type Place } from './deliver-setup.ts'

export interface HeldTask {
  readonly place: Place
  /** How many there are, and what the receivers know them by. */
  readonly webhooks: number
  readonly name: string
}

export interface HeldReport {
  readonly heapBytes: number
  /** Without the pages of files, which the system takes back when it needs them. */
  readonly ownBytes: number
  /** Since the report before. */
  readonly cpuMicros: number
}

const task = JSON.parse(process.argv[2] ?? '{}') as HeldTask
const { kv, webhook, startSender } = await openSending(task.place)
const unseen = new Set<string>()
let before = process.cpuUsage()

function tell(): void {
  const { user, system } = process.cpuUsage(before)
  before = process.cpuUsage()
  const [, kilobytes] = /^RssAnon:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  const report: HeldReport = {
    heapBytes: process.memoryUsage().heapUsed,
    ownBytes: Number(kilobytes) * 1_024,
    cpuMicros: user + system,
  }
  process.send?.(report)
}

const watched: Kv = {
  ...kv,
  async scan(scope, collection, range) {
    const found = await kv.scan(scope, collection, range)
    if (collection === DUE && unseen.delete(scope) && unseen.size === 0) tell()
    return found as never
  },
}

const webhooks = Array.from({ length: task.webhooks }, (_, n) => webhook(task.name, n, 'ok'))
for (const { id } of webhooks) unseen.add(`wh/${id}`)
startSender(webhooks, watched)
process.on('message', tell)
