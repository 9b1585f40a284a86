// What is answered, and how late, at each rate that is offered: npm run bench -- load [--rates 500,1000,2000] [--seconds 8]
// [--devices 2000] [--main FILE] [--json FILE]. With --main another build of the server is measured; `bench load-picture` draws.

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { cleanUp, startServer } from '../test/helpers/server.ts'
import { enrol, type Load, offer } from './offer.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    rates: { type: 'string', default: '250,500,1000,1500,2000,3000,4000,5000,6000' },
    seconds: { type: 'string', default: '8' },
    devices: { type: 'string', default: '2000' },
    main: { type: 'string' },
    json: { type: 'string' },
  },
})

try {
  const env = { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' }
  const server = await startServer({
    asShipped: true,
    env,
    ...(options.main === undefined ? {} : { main: options.main }),
  })
  const to = { url: server.url, publicKey: server.keys.public }
  const visitors = await enrol(to, Number(options.devices))
  await offer(to, visitors, 2_000, 15)
  const loads: Load[] = []
  for (const rate of options.rates.split(',').map(Number)) {
    const load = await offer(to, visitors, rate, Number(options.seconds))
    console.log(JSON.stringify(load))
    loads.push(load)
  }
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(loads, null, 2)}\n`)
} finally {
  await cleanUp()
}
