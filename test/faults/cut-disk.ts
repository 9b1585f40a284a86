// A disk whose power can be cut: ext4 on a loop device on a file that a process of ours serves (`cut-disk.child.ts`). What was
// flushed is there again when the power is back; of what was written since, whatever the seed says, sector by sector.
// Needs root, /dev/fuse and a loop device, and no program that Debian's base system does not have.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '../helpers/processes.ts'
import type { Rng } from '../helpers/rng.ts'
import { temporaryFolder } from '../helpers/server.ts'

export interface CutDiskOptions {
  /** `acknowledged`: a disk that says it has flushed and never does, so that a cut loses all since the power came on. */
  readonly flushes?: 'honoured' | 'acknowledged'
}

export interface CutDisk {
  /** A folder on the disk; always the same one. */
  readonly dir: string
  /** Nothing written from now on lasts, and nothing that writes gets an answer but an error. */
  cutPower(): Promise<void>
  /** Of what was in the cache of the disk, some is there. Whoever had files open must be gone. */
  restorePower(random: Rng): Promise<Survived>
  remove(): Promise<void>
}

/** What became of the writes that no flush had followed. */
export interface Survived {
  readonly how: (typeof FATES)[number]
  readonly writes: number
  readonly whole: number
  readonly torn: number
}

interface Write {
  readonly at: number
  readonly bytes: Buffer
}

const DISK_BYTES = 3_000_000_000 - (3_000_000_000 % 4_096)
const SECTOR_BYTES = 512
const CACHED_HEADER = 12
const MOUNTED_MS_MAX = 20_000
/** Nothing of the cache; the first of it, as of a disk that keeps the order; any of it, as of one that does not. */
const FATES = ['none', 'first', 'any', 'any'] as const
const CHILD = fileURLToPath(new URL('./cut-disk.child.js', import.meta.url))

/** What this machine lacks for such a disk, with what to do about it; null when nothing. */
export function missingForCutDisk(): string | null {
  if (process.getuid?.() !== 0) return 'power cuts need root, who may mount: run it with sudo'
  for (const device of ['/dev/fuse', '/dev/loop-control']) {
    try {
      accessSync(device, constants.R_OK | constants.W_OK)
    } catch {
      return `power cuts need ${device}: modprobe ${device === '/dev/fuse' ? 'fuse' : 'loop'}, or run the container with --privileged`
    }
  }
  try {
    execFileSync('mkfs.ext4', ['-V'], { stdio: 'ignore' })
  } catch {
    return 'power cuts need mkfs.ext4: apt-get install e2fsprogs'
  }
  return null
}

/** The writes in the cache, in their order. The last one may have been cut short, and was not acknowledged. */
export function readCache(bytes: Buffer): Write[] {
  const writes: Write[] = []
  for (let from = 0; from + CACHED_HEADER <= bytes.length; ) {
    const at = Number(bytes.readBigUInt64LE(from))
    const end = from + CACHED_HEADER + bytes.readUInt32LE(from + 8)
    writes.push({ at, bytes: bytes.subarray(from + CACHED_HEADER, end) })
    from = end
  }
  return writes
}

/** Lets some of the writes reach the platter, in any order that a disk may choose between two flushes. */
export function surviving(random: Rng, writes: readonly Write[], put: (write: Write) => void): Survived {
  const how = random.pick(FATES)
  let whole = 0
  let torn = 0
  const tear = ({ at, bytes }: Write) => {
    torn += 1
    for (let from = 0; from < bytes.length; from += SECTOR_BYTES) {
      if (random.chance(0.5)) put({ at: at + from, bytes: bytes.subarray(from, from + SECTOR_BYTES) })
    }
  }
  const keep = (write: Write) => {
    whole += 1
    put(write)
  }
  if (how === 'first') {
    const end = random.int(writes.length + 1)
    for (const write of writes.slice(0, end)) keep(write)
    const [next] = writes.slice(end, end + 1)
    if (next !== undefined) tear(next)
  }
  if (how === 'any') {
    for (const write of writes) {
      if (random.chance(0.4)) keep(write)
      else if (random.chance(0.5)) tear(write)
    }
  }
  return { how, writes: writes.length, whole, torn }
}

export async function openCutDisk({ flushes = 'honoured' }: CutDiskOptions = {}): Promise<CutDisk> {
  const lacking = missingForCutDisk()
  if (lacking !== null) throw new Error(lacking)
  const folder = temporaryFolder()
  const [seen, durable, cache] = ['seen', 'durable', 'cache'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const fuse = join(folder, 'fuse')
  const dir = join(folder, 'disk')
  for (const mountpoint of [fuse, dir]) mkdirSync(mountpoint)
  writeFileSync(durable, '')
  truncateSync(durable, DISK_BYTES)
  execFileSync('mkfs.ext4', ['-q', '-F', '-E', 'nodiscard', durable])
  let server = await powerOn()

  async function powerOn(): Promise<ChildProcess> {
    execFileSync('cp', ['--sparse=always', durable, seen])
    writeFileSync(cache, '')
    const device = openSync('/dev/fuse', 'r+')
    const options = `fd=3,rootmode=40700,user_id=0,group_id=0`
    execFileSync('mount', ['-i', '-t', 'fuse', '-o', options, 'cut-disk', fuse], {
      stdio: ['ignore', 'ignore', 'inherit', device],
    })
    const child = spawn(process.execPath, [CHILD, folder, flushes], { stdio: ['ignore', 'ignore', 'inherit', device] })
    // With it open here, the kernel would wait for answers of a process that is dead.
    closeSync(device)
    const mounting = spawn('mount', ['-o', 'loop', join(fuse, 'disk'), dir], { stdio: ['ignore', 'ignore', 'inherit'] })
    const [code] = await once(mounting, 'exit')
    if (code !== 0) throw new Error(`the disk cannot be mounted: ${code}`)
    return child
  }

  async function cutPower(): Promise<void> {
    if (server.exitCode !== null || server.signalCode !== null) return
    server.kill('SIGKILL')
    await once(server, 'exit')
  }

  async function unmount(): Promise<void> {
    await until('the disk is let go', MOUNTED_MS_MAX, () => isDone('umount', [dir]))
    await until('its server is let go', MOUNTED_MS_MAX, () => isDone('umount', [fuse]))
  }

  return {
    dir,
    cutPower,
    async restorePower(random) {
      await unmount()
      const written = flushes === 'honoured' ? readCache(readFileSync(cache)) : []
      const fd = openSync(durable, 'r+')
      const survived = surviving(random, written, ({ at, bytes }) => writeSync(fd, bytes, 0, bytes.length, at))
      closeSync(fd)
      server = await powerOn()
      return survived
    },
    async remove() {
      await cutPower()
      await unmount()
    },
  }
}

function isDone(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
