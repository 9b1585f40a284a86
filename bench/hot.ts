// What whoever tries it first sends: the README's first request again and again, so one device, one address and one account.
// Usage: npm run bench -- hot [--seconds 15] [--connections 1,128]

import { parseArgs } from 'node:util'
import autocannon from 'autocannon'
import { cleanUp } from '../test/helpers/server.ts'
import { cpuSeconds } from './measure.ts'
import { openEmbeddedSubject, type Subject } from './subject.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '15' }, connections: { type: 'string', default: '1,128' } },
})
const BODY = JSON.stringify({
  linkedId: 'user_42',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/147.0.0.0 Safari/537.36',
})

const cpuOf = (subject: Subject) => subject.pids().reduce((sum, [, pid]) => sum + (cpuSeconds(pid) ?? 0), 0)

async function cannon(subject: Subject, connections: number, seconds: number): Promise<void> {
  const before = cpuOf(subject)
  const { requests, latency, non2xx, errors } = await autocannon({
    url: `${subject.url}/v1/identify`,
    method: 'POST',
    headers: { authorization: `Bearer ${subject.keys.testSecret}`, 'content-type': 'application/json' },
    body: BODY,
    connections,
    duration: seconds,
  })
  const micros = Math.round(((cpuOf(subject) - before) * 1e6) / requests.total)
  console.log(
    `${connections} connections: ${Math.round(requests.average)}/s, p50 ${latency.p50} ms, p99 ${latency.p99} ms, CPU ${micros} us/event, refused ${non2xx + errors}`,
  )
}

try {
  const subject = await openEmbeddedSubject([])
  await cannon(subject, 16, 5)
  for (const connections of options.connections.split(',').map(Number)) {
    await cannon(subject, connections, Number(options.seconds))
  }
} finally {
  await cleanUp()
}
