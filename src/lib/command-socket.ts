// How a command asks the process that has a data folder to do something with it: one line of JSON there and one back, over a socket
// in the folder, which only the folder's user can enter.

import { rmSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { Unavailable } from './failures.ts'
import { openAddresses } from './folder-lock.ts'

export const COMMAND_SOCKET = 'command.sock'
const LINE_CHARS_MAX = 100_000

type Reply = { readonly done: unknown } | { readonly failed: string }

/** Resolves with what stops it. Whoever calls has the folder, so a socket that is there is dead. */
export async function serveCommands(
  dir: string,
  perform: (command: unknown) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const addresses = openAddresses(dir)
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    readLine(socket, (line) => {
      const reply = (value: Reply) => socket.end(`${JSON.stringify(value)}\n`)
      Promise.resolve()
        .then(() => perform(JSON.parse(line)))
        .then(
          (done) => reply({ done }),
          (error: unknown) => reply({ failed: error instanceof Error ? error.message : String(error) }),
        )
    })
  })
  rmSync(join(dir, COMMAND_SOCKET), { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(addresses.of(COMMAND_SOCKET), resolve)
  })
  server.unref()
  return async () => {
    rmSync(join(dir, COMMAND_SOCKET), { force: true })
    server.close()
    addresses.close()
  }
}

/** What the process answers. Throws Unavailable where nobody does, or with what it failed with. */
export async function askCommand(dir: string, command: unknown): Promise<unknown> {
  const addresses = openAddresses(dir)
  try {
    const line = await new Promise<string>((resolve, reject) => {
      const socket = createConnection(addresses.of(COMMAND_SOCKET), () => socket.write(`${JSON.stringify(command)}\n`))
      socket.on('error', reject)
      readLine(socket, resolve)
      socket.on('close', () => reject(new Error('it ended before it was done')))
    })
    const reply = JSON.parse(line) as Reply
    if ('failed' in reply) throw new Unavailable(reply.failed)
    return reply.done
  } catch (error) {
    if (error instanceof Unavailable) throw error
    throw new Unavailable(`the process that has ${dir} does not answer`, { cause: error })
  } finally {
    addresses.close()
  }
}

function readLine(socket: Socket, take: (line: string) => void): void {
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
    const end = text.indexOf('\n')
    if (end >= 0) {
      socket.removeAllListeners('data')
      take(text.slice(0, end))
    } else if (text.length > LINE_CHARS_MAX) socket.destroy()
  })
}
