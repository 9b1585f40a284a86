// The one-process deployment as a target: its server and its ClickHouse engine are killed, paused and robbed of their disk.

import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../helpers/port.ts'
import { childrenOf, isAlive, pause, until } from '../helpers/processes.ts'
import { type Rng, rng } from '../helpers/rng.ts'
import { launchServer, makeKeys, startServer, temporaryFolder } from '../helpers/server.ts'
import type { CutDisk, Survived } from './cut-disk.ts'
import { readJson } from './http.ts'
import type { Ledger } from './ledger.ts'
import type { Load } from './load.ts'
import { everyPartitionDecides, quiet } from './quiet.ts'
import type { Injury, Target } from './target.ts'

export interface EmbeddedOptions {
  /** The entry of another build than this one. */
  readonly main?: string
  /** Default: a fresh folder. */
  readonly dataDir?: string
  readonly kinds: readonly Kind[]
  readonly env?: Readonly<Record<string, string>>
  readonly nodeArgs?: readonly string[]
  /** What power cuts are of; holds the data folder. */
  readonly disk?: CutDisk
  /** Told after each of them what was left of what nobody had flushed. */
  readonly onPower?: (survived: Survived) => void
}

/** A repeat that is answered 202 is told an id of its own, so the wait is longer than any start takes. */
export const SERVER_ENV = { FINGERPOST_TRUSTED_PROXIES: '127.0.0.0/8', FINGERPOST_DECISION_WAIT_MS: '20000' }

/** On a disk so small that the usual reserve would be much of it. */
export const SMALL_DISK_ENV = { FINGERPOST_DATA_FREE_BYTES_MIN: '67108864' }

/** Kills: of the server, its ClickHouse engine, both at once, and of the server and then of one that is still starting. */
export const KILLS = ['server', 'server', 'server', 'engine', 'server', 'both', 'server', 'starting'] as const
/** Without a death: everything stands still, the engine stands still, the disk is full, the clock jumps. */
export const TROUBLES = ['paused', 'engine paused', 'disk full', 'clock'] as const
/** The machine is off at once: while it serves, and again while it starts after that. */
export const POWER_CUTS = ['power cut', 'power cut', 'power cut twice'] as const
export type Kind = (typeof KILLS)[number] | (typeof TROUBLES)[number] | (typeof POWER_CUTS)[number]

const STARTING_MS_MAX = 1_500
const ENGINE_OUTAGE_MS = 800
const PAUSE_MS_MAX = 5_000
const FULL_MS = 2_500
const JUMPED_MS = 1_500
const END_MS_MAX = 60_000
const ACCEPTED_MS_MAX = 60_000
const BALLAST_CHUNK = Buffer.alloc(1 << 20)

export async function openEmbedded(options: EmbeddedOptions): Promise<Target> {
  const started = {
    keys: makeKeys(),
    port: await freePort(),
    dataDir: options.dataDir ?? temporaryFolder(),
    env: { ...SERVER_ENV, ...options.env },
    ...(options.main === undefined ? {} : { main: options.main }),
    ...(options.nodeArgs === undefined ? {} : { nodeArgs: options.nodeArgs }),
  }
  const readyMs: number[] = []
  const decidingMs: number[] = []
  let server = await startServer(started)
  const { url, keys } = server
  let load: Load | null = null
  let partitions = 0

  /** The engine must not outlive its server: it would keep the folder from the next one. */
  async function kill({ pid, kill9 }: Pick<typeof server, 'pid' | 'kill9'>, alsoEngine: boolean): Promise<void> {
    // It dies as of now: looking for its children takes a while.
    process.kill(pid, 'SIGSTOP')
    const engines = childrenOf(pid)
    const gone = kill9()
    if (alsoEngine) for (const engine of engines) process.kill(engine, 'SIGKILL')
    await gone
    await until('the engine ends with its server', END_MS_MAX, () => !engines.some(isAlive))
  }

  /** All that ran is gone with what no disk had flushed. Still first: nobody may answer for a disk that is gone. */
  async function cutPower({ pid, kill9 }: Pick<typeof server, 'pid' | 'kill9'>): Promise<void> {
    process.kill(pid, 'SIGSTOP')
    const engines = childrenOf(pid)
    for (const engine of engines) process.kill(engine, 'SIGSTOP')
    await options.disk?.cutPower()
    for (const engine of engines) process.kill(engine, 'SIGKILL')
    await kill9()
    await until('all processes end', END_MS_MAX, () => !engines.some(isAlive))
  }

  async function restorePower(random: Rng): Promise<void> {
    if (options.disk === undefined) throw new Error('no disk whose power can be cut')
    options.onPower?.(await options.disk.restorePower(random))
  }

  async function restart(): Promise<void> {
    server = await startServer(started)
    readyMs.push(Math.round(server.readyMs))
    await decides()
  }

  async function decides(): Promise<void> {
    if (load !== null) decidingMs.push(Math.round(await everyPartitionDecides(load, url, partitions)))
  }

  /** The engine dies alone: nothing may be refused meanwhile. */
  async function killEngine(ledger: Ledger): Promise<void> {
    const { refused, answered } = ledger.counts
    const engines = childrenOf(server.pid)
    if (engines.length === 0) throw new Error('the server has no engine to kill')
    for (const engine of engines) process.kill(engine, 'SIGKILL')
    await pause(ENGINE_OUTAGE_MS)
    const from = performance.now()
    while (ledger.counts.answered === answered && performance.now() - from < ACCEPTED_MS_MAX) await pause(50)
    if (ledger.counts.answered === answered) ledger.violate('engine', 'nothing was accepted without it', [])
    if (ledger.counts.refused > refused) ledger.violate('engine', 'identifications were refused without it', [])
  }

  async function standStill(pids: readonly number[], ms: number): Promise<void> {
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    await pause(ms)
    for (const pid of pids) process.kill(pid, 'SIGCONT')
  }

  /** Leaves no free block on the disk of the data folder for a while. */
  async function fillDisk(): Promise<void> {
    const path = join(started.dataDir, '..', 'ballast')
    const fd = openSync(path, 'w')
    try {
      // What frees a block meanwhile (a merge, a trim) is taken as well.
      for (const until = performance.now() + FULL_MS; performance.now() < until; await pause(50)) {
        try {
          while (statfsSync(started.dataDir).bavail > 0) writeSync(fd, BALLAST_CHUNK)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
      }
    } finally {
      closeSync(fd)
      rmSync(path)
    }
  }

  const nothing = async () => undefined
  function injure(kind: Kind, random: Rng, ledger: Ledger): Omit<Injury, 'name'> {
    const ms = 500 + random.int(PAUSE_MS_MAX)
    // The load draws from the other one meanwhile.
    const fate = rng(random.int(2 ** 31))
    switch (kind) {
      case 'server':
        return { hurt: () => kill(server, false), heal: restart }
      case 'both':
        return { hurt: () => kill(server, true), heal: restart }
      case 'starting':
        return {
          hurt: () => kill(server, false),
          async heal() {
            const launched = await launchServer(started)
            await pause(random.int(STARTING_MS_MAX))
            await kill(launched, false)
            await restart()
          },
        }
      case 'power cut':
        return {
          hurt: () => cutPower(server),
          async heal() {
            await restorePower(fate)
            await restart()
          },
        }
      case 'power cut twice':
        return {
          hurt: () => cutPower(server),
          async heal() {
            await restorePower(fate)
            const launched = await launchServer(started)
            await pause(fate.int(STARTING_MS_MAX))
            await cutPower(launched)
            await restorePower(fate)
            await restart()
          },
        }
      case 'engine':
        return { hurt: () => killEngine(ledger), heal: nothing }
      case 'paused':
        return { hurt: () => standStill([server.pid], ms), heal: decides }
      case 'engine paused':
        return { hurt: () => standStill(childrenOf(server.pid), ms), heal: nothing }
      case 'disk full':
        return { hurt: fillDisk, heal: decides }
      case 'clock':
        // The hook given by `nodeArgs` jumps an hour or a day, forth or back.
        return {
          async hurt() {
            process.kill(server.pid, 'SIGUSR2')
            await pause(JUMPED_MS)
          },
          heal: decides,
        }
    }
  }

  return {
    urls: [url],
    url,
    keys,
    readyMs,
    decidingMs,
    get partitions() {
      return partitions
    },
    injury(cycle, random, ledger) {
      const kind = options.kinds[cycle % options.kinds.length] as Kind
      return { name: kind, ...injure(kind, random, ledger) }
    },
    quiet: (watching) => quiet(watching, [server], partitions),
    async watch(watching) {
      load = watching
      partitions = (await readJson<{ partitions: number }>(watching.agent, `${url}/readyz`, keys.secret)).partitions
    },
    async stop() {
      await server.stop()
    },
  }
}
