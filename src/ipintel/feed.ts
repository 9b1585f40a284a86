// The IP data this process decides by: looks for newer files, has them loaded by a thread, and swaps what is good. What
// cannot be loaded is reported and changes nothing.

import { Worker } from 'node:worker_threads'
import type { Clock } from '../lib/clock.ts'
import { within } from '../lib/within.ts'
import type { IpData } from './addresses.ts'
import type { LoadedSource, LoadJob } from './load.ts'
import { IP_SOURCES, type SourceName, type SourcePlaces } from './sources.ts'
import { tablePath, versionOf } from './store.ts'
import { type AddressTable, openTable } from './table.ts'

export interface IpFeedNeeds {
  readonly clock: Clock
  /** Folder of what was fetched. */
  readonly dir: string
  readonly places: readonly SourcePlaces[]
  readonly pollMs: number
  readonly bytesMax: number
  readonly relayIsVpn: boolean
  readonly report: IpFeedReport
}

export interface IpFeedReport {
  swapped(source: SourceName, entries: number, tookMs: number): void
  removed(source: SourceName): void
  failed(source: SourceName, reason: string): void
}

/** What is held of a source; null in place of it: nothing. */
export interface SourceState {
  /** null: nobody says how old the data is. */
  readonly ageSeconds: number | null
  readonly entries: number
  /** Why newer data than this is not in use. */
  readonly failure: string | null
}

export interface IpFeed {
  /** The object is replaced, never changed. */
  current(): IpData
  state(): Readonly<Record<SourceName, SourceState | null>>
  stop(): Promise<void>
}

/** A file of hundreds of megabytes is made into numbers; what it takes beyond the file itself is strings. */
const HEAP_MB = 4_096
/** How long a start waits for data: without it the first events would be decided knowing less. */
const FIRST_LOAD_MS_MAX = 3_000

interface Held {
  table: AddressTable | null
  /** Of the files it was made of, or of those that failed. */
  version: string | null
  failure: string | null
}

/** Resolves when what is there is loaded, or after a few seconds. */
export async function openIpFeed(needs: IpFeedNeeds): Promise<IpFeed> {
  const { clock, dir, places, relayIsVpn, report } = needs
  const held = new Map<SourceName, Held>(
    IP_SOURCES.map((source) => [source, { table: null, version: null, failure: null }]),
  )
  let current: IpData = { images: [], relayIsVpn }
  const stopped = new AbortController()

  async function versionOfSource({ source, files }: SourcePlaces): Promise<string | null> {
    if (files.length === 0) return versionOf(tablePath(dir, source))
    const versions = await Promise.all(files.map(({ location }) => versionOf(location)))
    return versions.every((version) => version === null) ? null : versions.join('\n')
  }

  function take(source: SourceName, version: string, loaded: LoadedSource, tookMs: number): void {
    const state = held.get(source) as Held
    if ('failure' in loaded) {
      if (loaded.isFinal) state.version = version
      state.failure = loaded.failure
      report.failed(source, loaded.failure)
      return
    }
    state.version = version
    state.failure = null
    state.table = loaded.image === null ? null : openTable(loaded.image)
    if (state.table !== null) report.swapped(source, state.table.meta.entries, tookMs)
  }

  async function refresh(): Promise<void> {
    const jobs: LoadJob[] = []
    const versions = new Map<SourceName, string>()
    let changed = false
    for (const one of places) {
      const { source, files } = one
      const state = held.get(source) as Held
      try {
        const version = await versionOfSource(one)
        if (version === state.version) continue
        if (version !== null) {
          versions.set(source, version)
          jobs.push({ source, dir, files, bytesMax: needs.bytesMax })
          continue
        }
        if (state.table !== null) report.removed(source)
        held.set(source, { table: null, version: null, failure: null })
        changed = true
      } catch (error) {
        state.failure = (error as Error).message
        report.failed(source, state.failure)
      }
    }
    const publish = () => {
      const images = [...held.values()].flatMap(({ table }) => (table === null ? [] : [table.image]))
      current = { images, relayIsVpn }
    }
    if (changed) publish()
    if (jobs.length === 0) return
    let startedAt = clock.monotonic()
    await loadInThread(jobs, stopped.signal, (loaded) => {
      take(loaded.source, versions.get(loaded.source) as string, loaded, clock.monotonic() - startedAt)
      versions.delete(loaded.source)
      startedAt = clock.monotonic()
      publish()
    }).catch((error: NodeJS.ErrnoException) => {
      // Too large once is too large every time; whatever else ended the thread may not happen again.
      const isFinal = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      for (const [source, version] of versions) take(source, version, { source, failure: error.message, isFinal }, 0)
    })
  }

  const first = refresh()
  async function poll(): Promise<void> {
    await first
    while (!stopped.signal.aborted) {
      await clock.sleep(needs.pollMs, stopped.signal)
      if (!stopped.signal.aborted) await refresh()
    }
  }
  const polling = poll()
  await within(clock, FIRST_LOAD_MS_MAX, first)

  return {
    current: () => current,
    state() {
      const now = clock.now()
      const states = [...held].map(([source, { table, failure }]) => {
        if (table === null && failure === null) return [source, null]
        const dataAt = table?.meta.dataAt ?? null
        const ageSeconds = dataAt === null ? null : Math.max(0, Math.floor((now - dataAt) / 1_000))
        return [source, { ageSeconds, entries: table?.meta.entries ?? 0, failure } satisfies SourceState]
      })
      return Object.fromEntries(states)
    },
    async stop() {
      stopped.abort()
      await polling
    },
  }
}

/** Runs the jobs one after the other in a thread of their own; rejects when the thread dies. */
function loadInThread(
  jobs: readonly LoadJob[],
  signal: AbortSignal,
  take: (loaded: LoadedSource) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./load.worker.js', import.meta.url), {
      workerData: jobs,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    const end = () => void thread.terminate()
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    thread.on('message', take)
    thread.once('error', reject)
    thread.once('exit', () => {
      signal.removeEventListener('abort', end)
      resolve()
    })
  })
}
