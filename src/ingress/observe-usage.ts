// Room and its limits as figures; what nobody knows here is left at 0.

import type { Metrics } from '../lib/metrics.ts'
import type { Usage } from './capacity.ts'

type RoomGauges = Pick<Metrics, 'logBytes' | 'logBytesMax' | 'kvBytes' | 'kvBytesMax' | 'diskFree' | 'diskFreeMin'>

export interface RoomLimits {
  readonly freeBytesMin: number
  readonly 'kv.bytesMax': number
}

export function observeUsage(gauges: RoomGauges, limits: RoomLimits): (usage: Usage) => void {
  return ({ logBytes, logBytesMax, kvBytes, freeBytes }) => {
    gauges.logBytes.set(logBytes)
    gauges.logBytesMax.set(logBytesMax ?? 0)
    gauges.kvBytes.set(kvBytes ?? 0)
    gauges.kvBytesMax.set(limits['kv.bytesMax'])
    // A server's disk is watched by whoever has the server.
    if (freeBytes === null) return
    gauges.diskFree.set(freeBytes)
    gauges.diskFreeMin.set(limits.freeBytesMin)
  }
}
