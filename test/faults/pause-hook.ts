// Loaded into a server before its own code: stops the whole process just before it sends what a file names, as if the machine
// had frozen it at that moment. The file is removed when it happens.

import { readFileSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'

const path = process.env.PAUSE_FILE ?? ''
const write = Socket.prototype.write

/** What the file names, or null without one. Another thread of the process may remove it at any moment. */
function read(): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

/** Whether it was this thread that removed the file: two that saw it must not stop the process twice. */
function isRemovedHere(): boolean {
  try {
    unlinkSync(path)
    return true
  } catch {
    return false
  }
}

Socket.prototype.write = function (this: Socket, ...args: Parameters<Socket['write']>) {
  const needle = read()
  if (needle !== null && needle !== '') {
    const [chunk] = args
    const bytes =
      typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (bytes.includes(needle) && isRemovedHere()) process.kill(process.pid, 'SIGSTOP')
  }
  return write.apply(this, args)
} as typeof write
