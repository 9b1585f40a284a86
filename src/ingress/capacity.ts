// Whether there is room to accept: the log's size and the state's against their caps and the disk's free space, looked at every few seconds.

import { statfs } from 'node:fs/promises'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'

export interface CapacityNeeds {
  readonly log: Pick<Log, 'usage'>
  readonly kv: Pick<Kv, 'usage'>
  readonly clock: Clock
  /** Folder whose disk must keep `freeBytesMin` free; null: no local disk to watch. */
  readonly dir: string | null
  readonly freeBytesMin: number
  /** State at which nothing is accepted any more: what was accepted still has to find room. */
  readonly kvBytesMax: number
  readonly onUsage: (usage: Usage) => void
  /** The state has come near its cap. Told again when it does so once more. */
  readonly onNearlyFull: (kvBytes: number) => void
}

/** What there is, null where nobody knows. */
export interface Usage {
  readonly logBytes: number
  readonly logBytesMax: number | null
  readonly kvBytes: number | null
  readonly freeBytes: number | null
}

export interface Capacity {
  usage(): Usage
  /** Why nothing can be accepted, or null. */
  refusal(): string | null
  /** Which of the two it is. */
  log(): string | null
  kv(): string | null
  /** Whether the store of the state answered when it was last asked; null before that, and where it tells nothing. */
  kvAnswers(): boolean | null
  stop(): void
}

/** `still`: while nothing is wrong and nothing was appended, only others can fill the disk, of which `data.freeBytesMin` keeps enough. */
const EVERY_MS = { busy: 2_000, still: 5_000 }
/** Appends fail at the cap itself: refusing earlier leaves room to decide what is accepted. */
const SHARE_MAX = 0.9
/** Of its cap: long before it is reached somebody should know. */
const KV_SHARE_WARNED = 0.8

export async function watchCapacity(needs: CapacityNeeds): Promise<Capacity> {
  const { log, kv, clock, dir, freeBytesMin, kvBytesMax } = needs
  let logBytes = 0
  let logBytesMax: number | null = null
  let freeBytes: number | null = null
  let kvBytes: number | null = null
  let kvAnswers: boolean | null = null
  let isWarned = false
  const refusals: { log: string | null; kv: string | null } = { log: null, kv: null }

  const refusal = () => refusals.log ?? refusals.kv
  const usage = (): Usage => ({ logBytes, logBytesMax, kvBytes, freeBytes })

  async function lookAtLog(): Promise<string | null> {
    try {
      const { bytes, bytesMax } = await log.usage()
      logBytes = bytes
      logBytesMax = bytesMax
      if (bytes >= bytesMax * SHARE_MAX) return 'log: no room for more identifications'
      if (dir === null) return null
      const disk = await statfs(dir)
      freeBytes = disk.bavail * disk.bsize
      return freeBytes < freeBytesMin ? 'disk: too little free space' : null
    } catch {
      return 'log: not available'
    }
  }

  /** A store that does not answer is noticed by whoever needs it: what was known of it counts meanwhile. */
  async function lookAtKv(): Promise<string | null> {
    try {
      const found = await kv.usage?.()
      kvBytes = found ?? null
      kvAnswers = found === undefined ? null : true
    } catch {
      kvAnswers = false
    }
    if (kvBytes === null) return null
    const isNear = kvBytes >= kvBytesMax * KV_SHARE_WARNED
    if (isNear && !isWarned) needs.onNearlyFull(kvBytes)
    isWarned = isNear
    return kvBytes >= kvBytesMax ? 'kv: no room for more visitors' : null
  }

  async function look(): Promise<void> {
    ;[refusals.log, refusals.kv] = await Promise.all([lookAtLog(), lookAtKv()])
    needs.onUsage(usage())
  }

  await look()
  const stopped = new AbortController()
  async function watch(): Promise<void> {
    let everyMs = EVERY_MS.busy
    while (!stopped.signal.aborted) {
      await nextBeat(clock, everyMs, stopped.signal)
      const before = logBytes
      await look()
      const isWell = refusal() === null && kvAnswers !== false
      everyMs = isWell && logBytes === before ? EVERY_MS.still : EVERY_MS.busy
    }
  }
  void watch()
  return {
    usage,
    refusal,
    log: () => refusals.log,
    kv: () => refusals.kv,
    kvAnswers: () => kvAnswers,
    stop: () => stopped.abort(),
  }
}
