// A port that nobody listens on yet, for listeners of several threads, and whether those can share it: the native driver always can,
// Node.js only from 22.12 on and where the system spreads connections, which a trial tells.

import { type AddressInfo, createServer, type Server } from 'node:net'
import { Told } from '../lib/failures.ts'
import { PortBusy } from './errors.ts'
import type { Driver } from './server.ts'

export interface FoundPort {
  readonly port: number
  /** False: one thread must listen for all. */
  readonly isShared: boolean
}

/** Of one start, where any port will do. */
const TRIES_MAX = 5

function probe(host: string, port: number, reusePort: boolean): Promise<Server> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', () => reject(new PortBusy(host, port)))
    server.listen({ host, port, exclusive: true, ...(reusePort ? { reusePort } : {}) }, () => resolve(server))
  })
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

const closed = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()))

async function canShare(host: string, port: number): Promise<boolean> {
  const first = await probe(host, port, true).catch(() => null)
  if (first === null) return false
  const second = await probe(host, port, true).catch(() => null)
  await Promise.all([first, second].map((server) => server && closed(server)))
  return second !== null
}

/** `wanted` or, for 0, any: the threads would share it with another process as well. Fails with PortBusy. */
export async function findPort(driver: Driver, host: string, wanted: number): Promise<FoundPort> {
  const server = await probe(host, wanted, false)
  const port = portOf(server)
  await closed(server)
  return { port, isShared: driver === 'uws' || (await canShare(host, port)) }
}

/**
 * Finds a port and has `listen` bind it. Another process may take it in between: where any will do, another one is found. Fails with
 * what `listen` fails with, and with PortBusy.
 */
export async function takePort(
  driver: Driver,
  host: string,
  wanted: number,
  listen: (found: FoundPort) => Promise<unknown>,
): Promise<number> {
  for (let tries = 1; ; tries++) {
    const found = await findPort(driver, host, wanted)
    try {
      await listen(found)
      return found.port
    } catch (error) {
      // What another thread was told has lost its class.
      if (wanted !== 0 || !(error instanceof Told) || tries === TRIES_MAX) throw error
    }
  }
}
