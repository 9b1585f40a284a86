// Decides from the bytes of an LMDB data file whether opening it is safe: LMDB maps the file into memory,
// so a truncated or overwritten one would end the process with a signal instead of an error.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { Unreadable } from './failures.ts'

const MAGIC = 0xbeefc0de
const DATA_VERSION = 2
const HEADER_BYTES = 24
const META_BYTES = 160
const NODE_BYTES = 8
const PAGE_BRANCH = 0x01
const PAGE_LEAF = 0x02
const PAGE_META = 0x08
const NODE_BIGDATA = 0x01
const NO_ROOT = 0xffffffffffffffffn
const TREE_DEPTH_MAX = 32

interface Meta {
  readonly pageBytes: number
  readonly roots: readonly bigint[]
  readonly lastPage: number
  readonly transaction: bigint
}

/**
 * Returns when `file` does not exist, is empty, or is an LMDB file that holds every page it refers to.
 * Throws Unreadable otherwise. Reads two pages and the tree roots; walks the whole tree only when the file is shorter
 * than its last page number says, which LMDB allows when the missing pages are free ones.
 */
export function checkLmdbFile(file: string): void {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  try {
    const fileBytes = fstatSync(fd).size
    if (fileBytes > 0) checkOpened(fd, fileBytes, file)
  } finally {
    closeSync(fd)
  }
}

function checkOpened(fd: number, fileBytes: number, file: string): void {
  const refuse = (what: string) => new Unreadable(`${file} is damaged: ${what}; restore it from a backup`)
  const first = readMeta(fd, 0)
  if (!first) throw refuse('it does not begin with an LMDB header')
  const second = readMeta(fd, first.pageBytes)
  if (!second || second.pageBytes !== first.pageBytes) throw refuse('its second header is not one')
  const meta = second.transaction > first.transaction ? second : first
  const pages = Math.floor(fileBytes / meta.pageBytes)
  const whole = meta.lastPage < pages
  for (const root of meta.roots) {
    if (root === NO_ROOT) continue
    if (!treeIsPresent(fd, meta.pageBytes, pages, root, whole ? 1 : TREE_DEPTH_MAX)) {
      throw refuse(whole ? 'a tree root is not where it should be' : 'pages in use are missing from its end')
    }
  }
}

function readMeta(fd: number, at: number): Meta | null {
  const bytes = Buffer.alloc(META_BYTES)
  if (readSync(fd, bytes, 0, META_BYTES, at) !== META_BYTES) return null
  if ((bytes.readUInt16LE(18) & PAGE_META) === 0) return null
  const meta = bytes.subarray(HEADER_BYTES)
  if (meta.readUInt32LE(0) !== MAGIC || (meta.readUInt32LE(4) & 0xffff) !== DATA_VERSION) return null
  const pageBytes = meta.readUInt32LE(24)
  if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0) return null
  return {
    pageBytes,
    roots: [meta.readBigUInt64LE(64), meta.readBigUInt64LE(112)],
    lastPage: Number(meta.readBigUInt64LE(120)),
    transaction: meta.readBigUInt64LE(128),
  }
}

function treeIsPresent(fd: number, pageBytes: number, pages: number, pageNumber: bigint, depthLeft: number): boolean {
  const page = Buffer.alloc(pageBytes)
  const at = Number(pageNumber)
  if (at >= pages || readSync(fd, page, 0, pageBytes, at * pageBytes) !== pageBytes) return false
  const flags = page.readUInt16LE(18)
  const branch = (flags & PAGE_BRANCH) !== 0
  if (page.readBigUInt64LE(0) !== pageNumber || (!branch && (flags & PAGE_LEAF) === 0)) return false
  if (depthLeft <= 1) return true
  // Offsets inside a page count from the end of its header.
  const pointersEnd = HEADER_BYTES + page.readUInt16LE(20)
  if (pointersEnd > pageBytes) return false
  for (let pointer = HEADER_BYTES; pointer < pointersEnd; pointer += 2) {
    const node = HEADER_BYTES + page.readUInt16LE(pointer)
    if (node + NODE_BYTES > pageBytes) return false
    const low = page.readUInt32LE(node)
    const nodeFlags = page.readUInt16LE(node + 4)
    if (branch) {
      const child = (BigInt(nodeFlags) << 32n) | BigInt(low)
      if (!treeIsPresent(fd, pageBytes, pages, child, depthLeft - 1)) return false
    } else if ((nodeFlags & NODE_BIGDATA) !== 0) {
      const data = node + NODE_BYTES + page.readUInt16LE(node + 6)
      if (data + 24 > pageBytes) return false
      if (page.readBigUInt64LE(data) + page.readBigUInt64LE(data + 16) > BigInt(pages)) return false
    }
  }
  return true
}
