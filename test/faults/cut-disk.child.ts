// A disk with a write cache, as a file system (FUSE) of one file that a loop device stands on. What is written is seen at once and
// lasts only after a flush; this process is killed at the moment of a power cut, and leaves what would be on the platter and
// what the cache held. Nobody else writes to these files, and nothing here needs more than Node and the kernel.

import { fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Argument: the folder of `seen`, `durable` and `cache`, and whether flushes are honoured or only acknowledged. File 3 is /dev/fuse. */
const [, , folder = '', flushes = 'honoured'] = process.argv
const FUSE = 3
const DISK_NODE = 2n
const WRITE_BYTES_MAX = 1 << 20
const PAGES_MAX = WRITE_BYTES_MAX / 4_096
const IN_HEADER = 40
const OUT_HEADER = 16
/** In front of each write in `cache`: where it goes, and its bytes. */
const CACHED_HEADER = 12
/** Attributes and names stay as they are. */
const VALID_SECONDS = 3_600n

const LOOKUP = 1
const FORGET = 2
const GETATTR = 3
const SETATTR = 4
const OPEN = 14
const READ = 15
const WRITE = 16
const STATFS = 17
const RELEASE = 18
const FSYNC = 20
const FLUSH = 25
const INIT = 26
const OPENDIR = 27
const RELEASEDIR = 29
const INTERRUPT = 36
const DESTROY = 38
const BATCH_FORGET = 42
const BIG_WRITES = 1 << 5
const MAX_PAGES = 1 << 22
const ENOENT = 2
const ENOSYS = 38

const seen = openSync(join(folder, 'seen'), 'r+')
const durable = openSync(join(folder, 'durable'), 'r+')
const cache = openSync(join(folder, 'cache'), 'a')
const size = BigInt(fstatSync(seen).size)
const request = Buffer.alloc(WRITE_BYTES_MAX + 4_096)
const answer = Buffer.alloc(WRITE_BYTES_MAX + OUT_HEADER)
/** Written and not flushed. */
let cached: { readonly at: number; readonly bytes: Buffer }[] = []

/** Of a request that failed, minus the code of the system. */
type AnswerBytes = number

function reply(unique: bigint, bytes: AnswerBytes): void {
  const length = OUT_HEADER + Math.max(bytes, 0)
  answer.writeUInt32LE(length, 0)
  answer.writeInt32LE(Math.min(bytes, 0), 4)
  answer.writeBigUInt64LE(unique, 8)
  writeSync(FUSE, answer, 0, length)
}

/** `struct fuse_attr` of a node at `at` of the answer. */
function attributes(at: number, node: bigint): void {
  answer.fill(0, at, at + 88)
  const isDisk = node === DISK_NODE
  answer.writeBigUInt64LE(node, at)
  answer.writeBigUInt64LE(isDisk ? size : 0n, at + 8)
  answer.writeBigUInt64LE(isDisk ? size / 512n : 0n, at + 16)
  answer.writeUInt32LE(isDisk ? 0o100600 : 0o40700, at + 60)
  answer.writeUInt32LE(1, at + 64)
  answer.writeUInt32LE(4_096, at + 80)
}

function init(): AnswerBytes {
  const minor = request.readUInt32LE(IN_HEADER + 4)
  answer.fill(0, OUT_HEADER, OUT_HEADER + 64)
  const words = [7, Math.min(minor, 31), 0, BIG_WRITES | MAX_PAGES]
  for (const [at, word] of words.entries()) answer.writeUInt32LE(word, OUT_HEADER + 4 * at)
  answer.writeUInt16LE(16, OUT_HEADER + 16)
  answer.writeUInt16LE(12, OUT_HEADER + 18)
  answer.writeUInt32LE(WRITE_BYTES_MAX, OUT_HEADER + 20)
  answer.writeUInt32LE(1, OUT_HEADER + 24)
  answer.writeUInt16LE(PAGES_MAX, OUT_HEADER + 28)
  return 64
}

function lookup(name: string): AnswerBytes {
  if (name !== 'disk') return -ENOENT
  answer.fill(0, OUT_HEADER, OUT_HEADER + 40)
  answer.writeBigUInt64LE(DISK_NODE, OUT_HEADER)
  answer.writeBigUInt64LE(VALID_SECONDS, OUT_HEADER + 16)
  answer.writeBigUInt64LE(VALID_SECONDS, OUT_HEADER + 24)
  attributes(OUT_HEADER + 40, DISK_NODE)
  return 128
}

function write(): AnswerBytes {
  const at = Number(request.readBigUInt64LE(IN_HEADER + 8))
  const bytes = Buffer.from(request.subarray(IN_HEADER + 40, IN_HEADER + 40 + request.readUInt32LE(IN_HEADER + 16)))
  const header = Buffer.alloc(CACHED_HEADER)
  header.writeBigUInt64LE(BigInt(at), 0)
  header.writeUInt32LE(bytes.length, 8)
  writeSync(cache, Buffer.concat([header, bytes]))
  writeSync(seen, bytes, 0, bytes.length, at)
  if (flushes === 'honoured') cached.push({ at, bytes })
  answer.writeUInt32LE(bytes.length, OUT_HEADER)
  answer.writeUInt32LE(0, OUT_HEADER + 4)
  return 8
}

/** A kill in the middle of it leaves part of the cache on the platter: the kernel was not told that it is. */
function flush(): void {
  for (const { at, bytes } of cached) writeSync(durable, bytes, 0, bytes.length, at)
  if (cached.length > 0) ftruncateSync(cache, 0)
  cached = []
}

/** null: nobody waits for an answer. */
function serve(opcode: number, node: bigint): AnswerBytes | null {
  switch (opcode) {
    case FORGET:
    case BATCH_FORGET:
    case INTERRUPT:
      return null
    case INIT:
      return init()
    case LOOKUP:
      return lookup(request.toString('latin1', IN_HEADER, request.indexOf(0, IN_HEADER)))
    case GETATTR:
    case SETATTR:
      answer.fill(0, OUT_HEADER, OUT_HEADER + 16)
      answer.writeBigUInt64LE(VALID_SECONDS, OUT_HEADER)
      attributes(OUT_HEADER + 16, node)
      return 104
    case OPEN:
    case OPENDIR:
    case STATFS:
      answer.fill(0, OUT_HEADER, OUT_HEADER + 80)
      return opcode === STATFS ? 80 : 16
    case READ: {
      const at = Number(request.readBigUInt64LE(IN_HEADER + 8))
      return readSync(seen, answer, OUT_HEADER, request.readUInt32LE(IN_HEADER + 16), at)
    }
    case WRITE:
      return write()
    case FSYNC:
      flush()
      return 0
    case FLUSH:
    case RELEASE:
    case RELEASEDIR:
    case DESTROY:
      return 0
    default:
      return -ENOSYS
  }
}

for (;;) {
  try {
    readSync(FUSE, request)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A request that was given up while it waited; and the end of the mount.
    if (code === 'ENOENT' || code === 'EINTR' || code === 'EAGAIN') continue
    if (code === 'ENODEV') break
    throw error
  }
  const bytes = serve(request.readUInt32LE(4), request.readBigUInt64LE(16))
  if (bytes !== null) reply(request.readBigUInt64LE(8), bytes)
}
