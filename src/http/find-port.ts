// A port that nobody listens on yet, for listeners of several threads that share it.

import { createServer } from 'node:net'
import { PortBusy } from './errors.ts'

/** `wanted` or, for 0, any: the threads would share it with another process as well. Fails with PortBusy. */
export function findPort(host: string, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', () => reject(new PortBusy(host, wanted)))
    probe.listen({ host, port: wanted, exclusive: true }, () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : wanted))
    })
  })
}
