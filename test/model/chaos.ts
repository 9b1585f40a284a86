// What goes wrong around the ports: processes die, sleep and are replaced; records that are none stand in the log; the kv
// loses a partition.

import { makeRequestId } from '../../src/domain/ids.ts'
import { encodeIdentification } from '../../src/records/identification.ts'
import { partitionScope } from '../../src/records/partitions.ts'
import type { Rng } from '../helpers/rng.ts'
import { type Deployment, PARTITIONS, WORKSPACE } from './deployment.ts'
import type { Faults } from './host.ts'
import type { StoredRecord } from './ports.ts'
import type { ModelProcess } from './process.ts'
import { EPOCH_MS, type Scheduler } from './scheduler.ts'

export interface Chaos {
  plan(ms: number): void
  /** Processes that are about to start or to stop. */
  moving(): number
  /** Virtual milliseconds until which some process sleeps. */
  asleepUntil(): number
  /** The partition whose records in the kv are gone, or null. */
  lostPartition(): number | null
  /** What the log lost all of a sudden, or null. */
  lostStream(): LostStream | null
}

/** A partition of a topic that was lost with all it held and goes on above it. */
export interface LostStream {
  readonly topic: 'identifications' | 'events'
  readonly partition: number
  readonly records: ReadonlySet<StoredRecord>
  /** Virtual milliseconds. */
  readonly at: number
}

export interface ChaosNeeds {
  readonly scheduler: Scheduler
  readonly deployment: Deployment
  readonly alive: () => readonly ModelProcess[]
  readonly start: () => void
  /** One process at a time, whose effects die with it. */
  readonly alone: boolean
  /** The kv does not lose a partition without the others. */
  readonly sharing: boolean
  /** Of its own: how often threads of processes die, pause and are fenced off; null: they have none. */
  readonly threads: Rng | null
  /** Whether a stream of the log gets lost instead of records of the kv. */
  readonly losesStream: boolean
}

/** How rough the ports are in this run. */
export function drawFaults({ random }: Scheduler): Faults {
  const storm = random.pick([0, 0.004, 0.02, 0.06])
  return {
    before: storm * random.float(),
    after: storm * random.float(),
    twice: storm * random.float(),
    lost: storm / 2,
    repeated: storm,
    thread: storm / 10,
    slow: storm,
    slowMsMax: random.pick([50, 400, 3_000]),
  }
}

export function createChaos(needs: ChaosNeeds): Chaos {
  const { scheduler, deployment, alive, start, alone, sharing, losesStream, threads } = needs
  const { random } = scheduler
  const { raw, kv } = deployment
  const stopping = new Set<ModelProcess>()
  let starting = 0
  let asleepUntil = 0
  let lostPartition: number | null = null
  let lostStream: LostStream | null = null

  function startLater(): void {
    starting++
    scheduler.after(random.float() * 2_000, () => {
      starting--
      start()
    })
  }

  function pause({ host }: ModelProcess): void {
    const ms = random.chance(0.03) ? random.float() * 100_000 : random.float() * 4_000
    scheduler.note(host.name, `sleeps for ${Math.round(ms)} ms`)
    host.pause(ms)
    asleepUntil = Math.max(asleepUntil, scheduler.now() + ms)
    if (!alone && random.chance(0.3)) startLater()
  }

  function stop(victim: ModelProcess): void {
    scheduler.note(victim.host.name, 'is asked to stop')
    stopping.add(victim)
    void victim.stop().then(() => {
      scheduler.note(victim.host.name, 'stopped')
      victim.host.kill(true)
      stopping.delete(victim)
      startLater()
    })
  }

  function disturb(): void {
    const victims = alive().filter((p) => !stopping.has(p))
    if (victims.length === 0) return
    const victim = random.pick(victims)
    const kind = random.float()
    if (kind < 0.45) pause(victim)
    else if (kind < 0.85) {
      scheduler.note(victim.host.name, 'dies')
      victim.host.kill(alone)
      startLater()
    } else stop(victim)
  }

  function disturbThread(dice: Rng): void {
    for (const { shards } of alive()) {
      const those = shards()
      const host = those.length > 1 ? dice.pick(those) : those[0]
      if (host === undefined) continue
      if (dice.chance(0.3)) {
        const ms = dice.float() * 3_000
        scheduler.note(host.name, `hangs for ${Math.round(ms)} ms`)
        host.pause(ms)
        asleepUntil = Math.max(asleepUntil, scheduler.now() + ms)
      } else {
        scheduler.note(host.name, 'dies')
        host.kill(true)
      }
    }
  }

  /** Bytes that are no identification, and one whose decision throws. */
  function poison(): void {
    const bytes = random.chance(0.5) ? random.bytes(random.int(60)) : undecidable()
    void raw.log.append('identifications', random.int(PARTITIONS), [bytes])
  }

  function undecidable(): Uint8Array {
    const acceptedAt = EPOCH_MS + Math.floor(scheduler.now())
    const meta = {
      requestId: makeRequestId(acceptedAt, (n) => random.bytes(n)),
      acceptedAt,
      workspace: WORKSPACE,
      env: 'live',
      keyKind: 'public',
      ip: '198.51.100.9',
      headers: {},
      token: null,
      tokenForged: false,
      replyTo: '',
    } as const
    return encodeIdentification(meta, Buffer.from('{"email":5}'))
  }

  function lose(): void {
    lostPartition = random.int(PARTITIONS)
    scheduler.note('kv', `the records of partition ${lostPartition} are lost`)
    kv.scopes.delete(partitionScope(lostPartition))
  }

  function loseStream(): void {
    const topic = random.pick(['identifications', 'events'] as const)
    const partition = random.int(PARTITIONS)
    const records = new Set(deployment.log.lose(topic, partition, random.pick([1, 5, 5_000])))
    lostStream = { topic, partition, records, at: scheduler.now() }
    scheduler.note('log', `${topic}/${partition} loses ${records.size} records`)
  }

  return {
    plan(ms) {
      const at = () => random.float() * ms
      for (let i = random.int(4); i > 0; i--) scheduler.after(at(), disturb)
      if (random.chance(0.2)) scheduler.after(at(), poison)
      if (random.chance(0.1))
        scheduler.after(at(), () => void raw.log.append('changes', 0, [random.bytes(random.int(60))]))
      if (threads !== null) {
        const when = () => threads.float() * ms
        for (let i = threads.int(5); i > 0; i--) scheduler.after(when(), () => disturbThread(threads))
        // Behind the back of the process: whoever builds on what was there is fenced off.
        if (threads.chance(0.3)) for (let i = threads.int(4); i > 0; i--) scheduler.after(when(), poison)
      }
      if (losesStream) scheduler.after(at(), loseStream)
      else if (random.chance(0.06)) {
        const when = at()
        if (!sharing) scheduler.after(when, lose)
      }
    },
    moving: () => starting + [...stopping].filter(({ host }) => host.alive()).length,
    asleepUntil: () => asleepUntil,
    lostPartition: () => lostPartition,
    lostStream: () => lostStream,
  }
}
