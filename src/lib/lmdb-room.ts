// How much of the disk an LMDB environment must leave free: the library corrupts memory when the disk refuses its pages.
import { statfsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** Free space that a transaction must leave. What frees room (a trim) writes little, and must be possible when nothing else is. */
export const RESERVE_BYTES = 64 * 1024 * 1024
const RESERVE_BYTES_TO_FREE = 24 * 1024 * 1024
/** Below this much free space an I/O error is taken for a full disk: LMDB reports a short write as one. */
const ROOM_BYTES_MIN = 16 * 1024 * 1024
const NO_ROOM_CODES: readonly unknown[] = [27, 28, 122, -30792]

/** With this much free space nobody fills the disk between two looks. */
const PLENTY_BYTES = 2 * 1024 * 1024 * 1024
const LOOK_EVERY_MS = 100

export interface Reserve {
  /** Whether a transaction of `bytes` may begin; 0 stands for one that frees room. */
  isLeftBy(bytes: number): boolean
}

/** Looks before each transaction, unless there was plenty of free space just now. */
export function openReserve(path: string): Reserve {
  let plentyUntilMs = 0
  return {
    isLeftBy(bytes) {
      const nowMs = performance.now()
      if (nowMs < plentyUntilMs) return true
      const free = freeBytes(path)
      if (free > PLENTY_BYTES) plentyUntilMs = nowMs + LOOK_EVERY_MS
      return free > (bytes === 0 ? RESERVE_BYTES_TO_FREE : RESERVE_BYTES + 2 * bytes)
    },
  }
}

/** Whether a copy of `bytes` may be made beside the file. */
export const hasRoomForCopy = (path: string, bytes: number): boolean =>
  freeBytes(path) > 2 * RESERVE_BYTES + 1.25 * bytes

/** Whether a write failed because the disk is full. */
export async function lacksRoom(path: string, cause: unknown): Promise<boolean> {
  if (NO_ROOM_CODES.includes((cause as { code?: unknown }).code)) return true
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize < ROOM_BYTES_MIN
  } catch {
    return false
  }
}

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
