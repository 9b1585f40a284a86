// The files of a backup: frames, compressed, with a digest of what lies on disk. Reading trusts nothing that it has not counted.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { unpack } from '../lib/codec.ts'
import { Unreadable } from '../lib/failures.ts'
import { type LogRecord, RECORD_BYTES_MAX } from '../log/log.ts'
import type { BackupFile } from './backup-format.ts'

export interface FrameWriter {
  /** `records`: how many this frame holds; default 1. */
  write(bytes: Uint8Array, records?: number): Promise<void>
  /** Resolves when the file is on disk. */
  close(): Promise<BackupFile>
  /** Instead of `close`, when something has failed: lets go of the file as it is. Never rejects. */
  abandon(): Promise<void>
}

const LENGTH_BYTES = 4
const SEQ_BYTES = 8
/** A record of the log, or a page of lines. */
export const FRAME_BYTES_MAX = 4 * RECORD_BYTES_MAX

/** The file must not be there yet. */
export function openFrames(dir: string, name: string): FrameWriter {
  const gzip = createGzip({ level: 1 })
  const hash = createHash('sha256')
  let bytes = 0
  let rawBytes = 0
  let records = 0
  const digesting = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk)
      bytes += chunk.length
      done(null, chunk)
    },
  })
  const file = createWriteStream(join(dir, name), { flags: 'wx', mode: 0o600, flush: true })
  const written = pipeline(gzip, digesting, file)
  // Whoever writes next, or closes, is told.
  written.catch(() => undefined)

  return {
    async write(frame, count = 1) {
      if (frame.length > FRAME_BYTES_MAX) throw new RangeError(`a frame takes up to ${FRAME_BYTES_MAX} bytes`)
      const length = Buffer.alloc(LENGTH_BYTES)
      length.writeUInt32BE(frame.length)
      rawBytes += LENGTH_BYTES + frame.length
      records += count
      gzip.write(length)
      if (!gzip.write(frame)) await Promise.race([once(gzip, 'drain'), written])
    },
    async close() {
      gzip.end()
      await written
      return { name, bytes, sha256: hash.digest('hex'), rawBytes, records }
    },
    async abandon() {
      gzip.destroy()
      file.destroy()
      await written.catch(() => undefined)
      if (!file.closed) await new Promise<void>((resolve) => file.once('close', () => resolve()))
    },
  }
}

/** Throws Unreadable unless the file is the one that was written. */
export async function verifyFile(dir: string, { name, bytes, sha256 }: BackupFile): Promise<void> {
  const path = join(dir, name)
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) throw new Unreadable(`${path} is missing`)
  if (size !== bytes) throw new Unreadable(`${path} has ${size} bytes instead of ${bytes}`)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  if (hash.digest('hex') !== sha256) throw new Unreadable(`${path} was changed since it was written`)
}

/** Throws Unreadable for anything but whole frames of as many bytes as the manifest says. */
async function* readFrames(dir: string, { name, rawBytes }: BackupFile): AsyncGenerator<Buffer> {
  const damaged = (why: string, cause?: unknown) => new Unreadable(`${join(dir, name)} is damaged: ${why}`, { cause })
  const gunzip = createGunzip()
  const reading = pipeline(createReadStream(join(dir, name)), gunzip)
  reading.catch(() => undefined)
  let held: Buffer[] = []
  let heldBytes = 0
  let wanted = LENGTH_BYTES
  let isLength = true
  let total = 0
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      total += chunk.length
      if (total > rawBytes) throw damaged('it holds more than it says')
      held.push(chunk)
      heldBytes += chunk.length
      if (heldBytes < wanted) continue
      let bytes = held.length === 1 ? chunk : Buffer.concat(held)
      while (bytes.length >= wanted) {
        const part = bytes.subarray(0, wanted)
        bytes = bytes.subarray(wanted)
        if (!isLength) yield part
        wanted = isLength ? part.readUInt32BE() : LENGTH_BYTES
        isLength = !isLength
        if (wanted > FRAME_BYTES_MAX) throw damaged('a frame is too long')
      }
      held = [bytes]
      heldBytes = bytes.length
    }
    await reading
  } catch (error) {
    throw error instanceof Unreadable ? error : damaged((error as Error).message, error)
  } finally {
    gunzip.destroy()
  }
  if (total !== rawBytes || heldBytes !== 0 || !isLength) throw damaged('it ends early')
}

/** A log record as a frame. */
export function encodeLogRecord({ seq, bytes }: LogRecord): Uint8Array {
  const frame = Buffer.allocUnsafe(SEQ_BYTES + bytes.length)
  frame.writeDoubleBE(seq)
  frame.set(bytes, SEQ_BYTES)
  return frame
}

/** The records of a topic's file, in order. */
export async function* readLogRecords(dir: string, file: BackupFile): AsyncGenerator<LogRecord> {
  let last = 0
  for await (const frame of readFrames(dir, file)) {
    const seq = frame.length < SEQ_BYTES ? 0 : frame.readDoubleBE()
    if (!Number.isSafeInteger(seq) || seq <= last || frame.length > SEQ_BYTES + RECORD_BYTES_MAX) {
      throw new Unreadable(`${join(dir, file.name)} is damaged: it is no log`)
    }
    last = seq
    yield { seq, bytes: frame.subarray(SEQ_BYTES) }
  }
}

/** The values of a file of packed values. */
export async function* readValues(dir: string, file: BackupFile): AsyncGenerator<unknown> {
  for await (const frame of readFrames(dir, file)) yield unpack(frame)
}

/** The lines of a file of pages. */
export async function* readBackupLines(dir: string, file: BackupFile): AsyncGenerator<string> {
  for await (const frame of readFrames(dir, file)) {
    for (const line of frame.toString('utf8').split('\n')) if (line !== '') yield line
  }
}
