// Free TCP ports for programs that are started with the number of one: no other test gets it, now or during a restart.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below those that systems give to whoever listens on port 0 or connects. */
const FIRST = 12_000
const COUNT = 20_000
const TRIES_MAX = 1_000

/** The UDP port of the same number is the mark that it is taken, which ends with this process. */
async function mark(port: number): Promise<boolean> {
  const socket = createSocket('udp4')
  socket.bind({ port, address: '127.0.0.1', exclusive: true })
  try {
    await once(socket, 'listening')
  } catch {
    return false
  }
  socket.unref()
  return true
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
  } catch {
    return false
  }
  probe.close()
  await once(probe, 'close')
  return true
}

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    if ((await mark(port)) && (await isFree(port))) return port
  }
  throw new Error(`no free port from ${FIRST} to ${FIRST + COUNT}`)
}
