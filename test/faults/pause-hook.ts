// Loaded into a server before its own code: stops the whole process just before it sends what a file names, as if the machine
// had frozen it at that moment. The file is removed when it happens.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'

const path = process.env.PAUSE_FILE ?? ''
const write = Socket.prototype.write

Socket.prototype.write = function (this: Socket, ...args: Parameters<Socket['write']>) {
  if (existsSync(path)) {
    const needle = readFileSync(path, 'utf8')
    const [chunk] = args
    const bytes =
      typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    if (needle !== '' && bytes.includes(needle)) {
      rmSync(path)
      process.kill(process.pid, 'SIGSTOP')
    }
  }
  return write.apply(this, args)
} as typeof write
