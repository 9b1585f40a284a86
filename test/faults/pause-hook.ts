// Loaded into a server and its threads before their own code: stops the whole process just before one of them sends what a file names,
// as if the machine had frozen it at that moment. The thread that stops it removes the file.

import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { isRemovedHere } from '../helpers/remove-first.ts'

const path = process.env.PAUSE_FILE ?? ''
const write = Socket.prototype.write

/** What the file names; '' without one. Another thread may remove it at any moment. */
function needleNow(): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

Socket.prototype.write = function (this: Socket, ...args: Parameters<Socket['write']>) {
  const needle = needleNow()
  if (needle !== '') {
    const [chunk] = args
    const bytes =
      typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (bytes.includes(needle) && isRemovedHere(path)) process.kill(process.pid, 'SIGSTOP')
  }
  return write.apply(this, args)
} as typeof write
