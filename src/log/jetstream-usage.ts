// How full the streams are: looked at now and then, with this process's own appends added in between.
import type { Clock } from '../lib/clock.ts'
import type { Streams } from './jetstream-streams.ts'

export interface StreamUsage {
  /** Bytes this process has appended to a stream. */
  note(stream: string, bytes: number): void
  /** Fails with Unavailable. */
  read(): Promise<{ readonly bytes: number; readonly bytesMax: number }>
}

interface Sample {
  bytes: number
  readonly bytesMax: number
}

const SAMPLE_MS = 1_000
/**
 * A stream that is fuller than this stands for the whole log: it refuses appends although others have room, and who watches the log is to
 * hear of it before.
 */
const STREAM_SHARE_MAX = 0.7

export function openUsage(streams: Pick<Streams, 'lookAtAll'>, clock: Clock): StreamUsage {
  const samples = new Map<string, Sample>()
  let sampledAt = Number.NEGATIVE_INFINITY
  let sampling: Promise<void> | null = null

  async function sample(): Promise<void> {
    // A stream whose leader does not answer keeps its last sample.
    for (const { name, bytes, bytesMax } of await streams.lookAtAll()) samples.set(name, { bytes, bytesMax })
    sampledAt = clock.monotonic()
  }

  return {
    note(stream, bytes) {
      const found = samples.get(stream)
      if (found) found.bytes += bytes
    },
    async read() {
      if (clock.monotonic() - sampledAt > SAMPLE_MS) {
        sampling ??= sample().finally(() => {
          sampling = null
        })
        await sampling
      }
      let bytes = 0
      let bytesMax = 0
      let worst = 0
      for (const one of samples.values()) {
        bytes += one.bytes
        bytesMax += one.bytesMax
        worst = Math.max(worst, one.bytes / one.bytesMax)
      }
      return { bytes: worst > STREAM_SHARE_MAX ? Math.max(bytes, Math.floor(worst * bytesMax)) : bytes, bytesMax }
    },
  }
}
