// A log on a NATS server of its own, what it is asked again and again, and who follows it.

import type { Test } from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { connectNats } from '../../src/lib/nats.ts'
import { type LogFact, openJetStreamLog } from '../../src/log/jetstream.ts'
import type { Log, LogRecord } from '../../src/log/log.ts'
import { type NatsServer, startNats } from './nats.ts'
import { patiently } from './patiently.ts'

export const ALL = { recordsMax: 1_000_000, bytesMax: 1_000_000_000, waitMsMax: 0 }
export const { sleep } = systemClock
export const record = (text: string) => Buffer.from(text)
export const textOf = ({ bytes }: LogRecord) => Buffer.from(bytes).toString()

let ids = 0
const makeDeploymentId = (): string => {
  ids += 1
  return `id${process.pid}x${ids}`
}

export async function openOn(t: Test, urls: readonly string[], facts: LogFact[] = []): Promise<Log> {
  const connection = await connectNats({ servers: urls, name: 'test' })
  const { log } = await openJetStreamLog({
    connection,
    prefix: 'test',
    partitions: 2,
    replicas: 1,
    bytesMax: 1_000_000_000,
    clock: systemClock,
    makeDeploymentId,
    report: (fact) => facts.push(fact),
  })
  t.teardown(async () => {
    await log.close()
    await connection.close()
  })
  return log
}

export async function started(t: Test): Promise<{ server: NatsServer; log: Log; facts: LogFact[] }> {
  const server = await startNats()
  t.teardown(() => server.remove())
  const facts: LogFact[] = []
  return { server, facts, log: await openOn(t, [server.url], facts) }
}

export async function readAll(log: Log, topic: 'events' | 'identifications', partition: number): Promise<LogRecord[]> {
  const found: LogRecord[] = []
  for (;;) {
    const batch = await patiently(() => log.read(topic, partition, found.at(-1)?.seq ?? 0, ALL))
    if (batch.length === 0) return found
    found.push(...batch)
  }
}

/** Collects what comes, until `stop`. */
export function follow(log: Log, topic: 'events' | 'identifications', partition: number) {
  const stopping = new AbortController()
  const seen: LogRecord[] = []
  const done = (async () => {
    while (!stopping.signal.aborted) {
      const after = seen.at(-1)?.seq ?? 0
      const limits = { ...ALL, waitMsMax: 500 }
      seen.push(...(await patiently(() => log.read(topic, partition, after, limits, stopping.signal))))
    }
  })()
  return {
    seen,
    async stop() {
      stopping.abort()
      await done
    },
  }
}
