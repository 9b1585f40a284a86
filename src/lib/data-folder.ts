// The folder that holds everything a single-machine deployment remembers: its format, and the one process that may use it.
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Clock } from './clock.ts'
import { COMMAND_SOCKET } from './command-socket.ts'
import { Unreadable } from './failures.ts'
import { type FolderLock, isLockFile, lockFolder } from './folder-lock.ts'
import { makeFolder } from './make-folder.ts'
import { makePrivate } from './private-folder.ts'

/**
 * The newest layout of the data folder this build reads, and the one it writes. Since 2 entries of the log may be compressed, which builds before
 * would take for damaged ones (D205).
 */
export const DATA_FORMAT = 2

export interface DataFolderConfig {
  /** The newest format this build reads and the one it writes. */
  readonly format: number
  /** How many partitions a new folder gets. An existing folder keeps its own number. */
  readonly partitions: number
  readonly clock: Clock
  /** Uniform in [0, 1). */
  readonly random: () => number
}

export interface DataFolder {
  readonly format: number
  readonly partitions: number
  /** ISO 8601. */
  readonly createdAt: string
  /** Lets another process claim the folder. The end of the process, however it comes, does the same. */
  release(): Promise<void>
}

const FORMAT_FILE = 'format.json'
/** Left behind when the process ends before the format file is complete. */
const FORMAT_DRAFT = 'format.json.new'
/** Data about addresses may be fetched before there is anything else. */
const IP_DATA = 'ip'
/** So may the key of a deployment that is restored here. */
const KEY_FILE = 'master.key'
/** Has files without number, which nobody else reaches once the folder is closed. */
const HISTORY = 'clickhouse'
const IGNORED: readonly string[] = [FORMAT_DRAFT, IP_DATA, KEY_FILE, COMMAND_SOCKET, 'lost+found']
const PARTITIONS_MAX = 1_024

/**
 * Makes the folder when it is missing, private (0700, files 0600) in any case, and writes its format when it is empty or of an older build: from
 * then on that one refuses it. Throws FolderInUse while another process has it, and Unreadable when it holds a newer format, a damaged format file, or files that are not ours.
 * Needs a local disk: the claim is not seen from another machine.
 */
export async function claimDataFolder(dir: string, config: DataFolderConfig): Promise<DataFolder> {
  makeFolder(dir)
  // Looking first keeps a lock out of folders that belong to someone else.
  readFormat(dir, config.format)
  const lock = await lockFolder(dir, config)
  try {
    makePrivate(dir, [HISTORY])
    const made = { createdAt: new Date(config.clock.now()).toISOString(), partitions: config.partitions }
    const found = readFormat(dir, config.format)
    const isCurrent = found?.format === config.format
    return withRelease(isCurrent ? found : writeFormat(dir, { ...(found ?? made), format: config.format }), lock)
  } catch (error) {
    await lock.release()
    throw error
  }
}

interface Format {
  readonly format: number
  readonly createdAt: string
  readonly partitions: number
}

function withRelease(format: Format, lock: FolderLock): DataFolder {
  return { ...format, release: () => lock.release() }
}

/** null: nothing is there yet. Throws Unreadable as `claimDataFolder` does, and changes nothing. */
export function readFormat(dir: string, newest: number): Format | null {
  const names = readdirSync(dir).filter((name) => !IGNORED.includes(name) && !isLockFile(name))
  if (names.length === 0) return null
  const file = join(dir, FORMAT_FILE)
  if (!names.includes(FORMAT_FILE)) {
    throw new Unreadable(`${dir} holds files but no ${FORMAT_FILE}: it is not a data folder; name an empty or new one`)
  }
  const found = parseFormat(readFileSync(file, 'utf8'))
  if (!found) throw new Unreadable(`${file} is damaged; restore it from a backup`)
  if (found.format > newest) {
    throw new Unreadable(`${dir} has format ${found.format}, this build reads up to ${newest}: use a newer build`)
  }
  return found
}

function parseFormat(text: string): Format | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null) return null
  const { format, createdAt, partitions } = value as Record<string, unknown>
  if (!isCount(format, Number.MAX_SAFE_INTEGER) || !isCount(partitions, PARTITIONS_MAX)) return null
  if (typeof createdAt !== 'string' || Number.isNaN(Date.parse(createdAt))) return null
  return { format, createdAt, partitions }
}

function isCount(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max
}

function writeFormat(dir: string, made: Format): Format {
  const { partitions } = made
  if (!isCount(partitions, PARTITIONS_MAX)) {
    throw new RangeError(`a data folder has 1 to ${PARTITIONS_MAX} partitions, not ${partitions}`)
  }
  const draft = join(dir, FORMAT_DRAFT)
  writeFileSync(draft, `${JSON.stringify(made)}\n`, { mode: 0o600, flush: true })
  renameSync(draft, join(dir, FORMAT_FILE))
  const fd = openSync(dir, constants.O_RDONLY)
  fsyncSync(fd)
  closeSync(fd)
  return made
}
