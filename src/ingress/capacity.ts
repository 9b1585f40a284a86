// Whether there is room to accept: the log's size against its cap and the disk's free space, looked at once a second.

import { statfs } from 'node:fs/promises'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'

export interface CapacityNeeds {
  readonly log: Pick<Log, 'usage'>
  readonly clock: Clock
  /** Folder whose disk must keep `freeBytesMin` free; null: no local disk to watch. */
  readonly dir: string | null
  readonly freeBytesMin: number
  readonly onUsage: (logBytes: number) => void
}

export interface Capacity {
  /** Why nothing can be accepted, or null. */
  refusal(): string | null
  stop(): void
}

const EVERY_MS = 1_000
/** Appends fail at the cap itself: refusing earlier leaves room to decide what is accepted. */
const SHARE_MAX = 0.9

export async function watchCapacity(needs: CapacityNeeds): Promise<Capacity> {
  const { log, clock, dir, freeBytesMin } = needs
  let refusal: string | null = null

  async function look(): Promise<string | null> {
    try {
      const { bytes, bytesMax } = await log.usage()
      needs.onUsage(bytes)
      if (bytes >= bytesMax * SHARE_MAX) return 'log: no room for more identifications'
      if (dir === null) return null
      const disk = await statfs(dir)
      return disk.bavail * disk.bsize < freeBytesMin ? 'disk: too little free space' : null
    } catch {
      return 'log: not available'
    }
  }

  refusal = await look()
  const stopped = new AbortController()
  async function watch(): Promise<void> {
    while (!stopped.signal.aborted) {
      await clock.sleep(EVERY_MS, stopped.signal)
      refusal = await look()
    }
  }
  void watch()
  return { refusal: () => refusal, stop: () => stopped.abort() }
}
