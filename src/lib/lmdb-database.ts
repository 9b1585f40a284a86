// One LMDB database as the library gives it: how it is opened, how much of it is used, and whether it still works.
import { open, type RootDatabase } from 'lmdb'
import { Unavailable, Unreadable } from './failures.ts'
import { PACKED_FROM_BYTE, packed } from './lz4.ts'

export interface DatabaseConfig {
  readonly durability: 'fsync' | 'relaxed'
  /** Of a file that is made; an existing one keeps its own. Large pages suit large values: fewer to find, free and write. */
  readonly pageBytes: number
  /** Whether values from `COMPRESSED_FROM_BYTES` on are compressed as they are written. Those that are not can be read all the same. */
  readonly compressed?: boolean
  /**
   * Entries of the list of free pages in memory, with which a writer that looks for several pages in a row reads no more of the list, but
   * takes them from the end of the file; left out: 50,000. The library goes through all it has read with each commit (D231).
   */
  readonly freePagesMax?: number
}

const COMPRESSED_FROM_BYTES = 512
/** The library's own may change with its version, and what was written with another could not be read. */
const NO_DICTIONARY = Buffer.alloc(0)

/** Throws Unreadable when what is there is none of ours and Unavailable when it cannot be opened. */
export function openDatabase(config: DatabaseConfig, path: string): RootDatabase<Buffer, Buffer> {
  try {
    return open<Buffer, Buffer>({
      path,
      pageSize: config.pageBytes,
      encoding: 'binary',
      keyEncoding: 'binary',
      overlappingSync: false,
      // With it lmdb keeps a promise to itself, and a failed transaction becomes an unhandled rejection.
      eventTurnBatching: false,
      compression: config.compressed === true && { threshold: COMPRESSED_FROM_BYTES, dictionary: NO_DICTIONARY },
      noSync: config.durability === 'relaxed',
      ...(config.freePagesMax === undefined ? {} : { maxFreeSpaceToLoad: config.freePagesMax }),
    })
  } catch (cause) {
    const code = (cause as { code?: unknown }).code
    if (typeof code === 'number' && code <= -30_000) throw new Unreadable(`cannot read ${path}`, { cause })
    throw new Unavailable(`cannot open ${path}`, { cause })
  }
}

const writers = new WeakMap<RootDatabase<Buffer, Buffer>, RootDatabase<Buffer, Buffer>>()

/** The same database, which stores what is put through it as it is. */
function uncompressed(db: RootDatabase<Buffer, Buffer>): RootDatabase<Buffer, Buffer> {
  const known = writers.get(db)
  if (known !== undefined) return known
  const writer = Object.create(db, { compression: { value: undefined } }) as RootDatabase<Buffer, Buffer>
  writers.set(db, writer)
  return writer
}

/** What is to be put for a value, and through what. The bytes must stay as they are until the transaction is over. */
export interface Stored {
  readonly to: RootDatabase<Buffer, Buffer>
  readonly bytes: Uint8Array
}

/** Compressed here rather than by the library, where its binary loads (D210). */
export function storedIn(
  db: RootDatabase<Buffer, Buffer>,
  { compressed }: Pick<DatabaseConfig, 'compressed'>,
  value: Uint8Array,
): Stored {
  const isCompressed = compressed === true && (value.length >= COMPRESSED_FROM_BYTES || isSigned(value))
  const bytes = isCompressed ? packed(value) : null
  return bytes === null ? { to: db, bytes: value } : { to: uncompressed(db), bytes }
}

const isSigned = (value: Uint8Array): boolean => (value[0] ?? 0) >= PACKED_FROM_BYTE

interface TreeStats {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

/** Bytes of the pages in use, as of the last transaction. */
export function usedBytes(db: RootDatabase<Buffer, Buffer>): number {
  const stats = db.getStats() as TreeStats
  return (stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages) * stats.pageSize
}

/** Why no transaction can be made any more, or null. */
export function probe(db: RootDatabase<Buffer, Buffer>): Error | null {
  try {
    db.transactionSync(() => undefined)
    return null
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
