// Whether several threads of this process can listen on one port: the native driver always can, Node.js only from 22.12 on and where the
// system spreads connections, which a trial tells.

import { type AddressInfo, createServer, type Server } from 'node:net'
import type { Driver } from './server.ts'

function tryListen(port: number): Promise<Server | null> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(null))
    server.listen({ host: '127.0.0.1', port, exclusive: true, reusePort: true } as object, () => resolve(server))
  })
}

/** Resolves with false where one thread must listen for all. */
export async function canSharePort(driver: Driver): Promise<boolean> {
  if (driver === 'uws') return true
  const first = await tryListen(0)
  if (first === null) return false
  const second = await tryListen((first.address() as AddressInfo).port)
  first.close()
  second?.close()
  return second !== null
}
