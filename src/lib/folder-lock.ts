// Exclusive use of a folder for the life of a process. A lock is a listening socket in the folder: the kernel closes it
// with the process, so a lock nobody answers is dead for ever, whatever became of its process id.
import { closeSync, constants, openSync, readdirSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Clock } from './clock.ts'
import { Told, Unavailable } from './failures.ts'

/** Another live process has the folder. */
export class FolderInUse extends Told {
  override readonly name = 'FolderInUse'
  /** As the other process sees itself; in a container it may mean nothing here. */
  readonly pid: number

  constructor(dir: string, pid: number) {
    super(`${dir} is in use by process ${pid}: stop it or name another folder`)
    this.pid = pid
  }
}

export interface FolderLock {
  release(): Promise<void>
}

const LOCK_FILE = /^lock-(\d{1,10})-([0-9a-z]{1,16})\.sock$/
/** What the platform allows for the address of a socket, with a margin. */
const ADDRESS_BYTES_MAX = 100
const ANSWER_MS_MAX = 2_000
const CLAIM_MS_MAX = 5_000
const RETRY_MS = 20
const HELD = 'held'
const CLAIMING = 'claiming'

export function isLockFile(name: string): boolean {
  return LOCK_FILE.test(name)
}

/**
 * Every process publishes a socket of its own first and looks for others second, so of two at least one sees the other.
 * Names are never used twice, so removing a dead one can never hit a live one. Of two that start together the one whose
 * name sorts first stays.
 */
export async function lockFolder(
  dir: string,
  { clock, random }: { readonly clock: Clock; readonly random: () => number },
): Promise<FolderLock> {
  const own = `lock-${process.pid}-${Math.floor(random() * 2 ** 52).toString(36)}.sock`
  const addresses = openAddresses(dir)
  let state = CLAIMING
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.end(state)
  })
  const release = async () => {
    rmSync(join(dir, own), { force: true })
    await new Promise<void>((resolve) => server.close(() => resolve()))
    addresses.close()
  }
  try {
    await listen(server, addresses.of(own))
  } catch (cause) {
    addresses.close()
    throw new Unavailable(`cannot lock ${dir}: it must be on a local disk that takes sockets`, { cause })
  }
  server.unref()
  try {
    const deadline = clock.monotonic() + CLAIM_MS_MAX
    for (let round = await look(dir, own, addresses.of); round !== 'free'; round = await look(dir, own, addresses.of)) {
      if (round.state === HELD || round.name < own || clock.monotonic() > deadline)
        throw new FolderInUse(dir, round.pid)
      await clock.sleep(RETRY_MS)
    }
    state = HELD
    return { release }
  } catch (error) {
    await release()
    throw error
  }
}

interface Rival {
  readonly name: string
  readonly pid: number
  readonly state: string
}

/** The live lock that sorts first or is held, after removing the dead ones. */
async function look(dir: string, own: string, addressOf: (name: string) => string): Promise<Rival | 'free'> {
  let rival: Rival | 'free' = 'free'
  for (const name of readdirSync(dir).sort()) {
    const match = LOCK_FILE.exec(name)
    if (!match || name === own) continue
    const state = await ask(addressOf(name))
    if (state === null) rmSync(join(dir, name), { force: true })
    else if (rival === 'free' || state === HELD) rival = { name, pid: Number(match[1]), state }
  }
  return rival
}

/** Null when nobody listens; HELD also for a process too busy or too stopped to answer. */
function ask(address: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createConnection(address)
    let answer = ''
    const finish = (state: string | null) => {
      socket.destroy()
      resolve(state)
    }
    socket.setTimeout(ANSWER_MS_MAX, () => finish(HELD))
    socket.on('data', (bytes) => {
      answer += bytes
    })
    socket.on('end', () => finish(answer === CLAIMING ? CLAIMING : HELD))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const dead = error.code === 'ECONNREFUSED' || error.code === 'ENOENT'
      // A reset after the connection was made: its process has just ended. Ask again.
      if (error.code === 'ECONNRESET') resolve(ask(address))
      else finish(dead ? null : HELD)
    })
  })
}

function listen(server: Server, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Socket addresses are short; a deep folder is reached through its open descriptor, where the platform has that. */
export function openAddresses(dir: string): { of(name: string): string; close(): void } {
  if (Buffer.byteLength(join(dir, 'lock-4194304-0123456789ab.sock')) <= ADDRESS_BYTES_MAX) {
    return { of: (name) => join(dir, name), close: () => undefined }
  }
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY)
  return { of: (name) => `/proc/self/fd/${fd}/${name}`, close: () => closeSync(fd) }
}
