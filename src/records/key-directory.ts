// Every key of the deployment in memory, found by digest. It reloads when told that keys changed, asks now and then in
// case the hint was lost, and knows how old its knowledge is.

import { type Bus, pollEveryMs } from '../bus/bus.ts'
import type { ApiKey, Workspace } from '../domain/workspace.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Sealer } from '../lib/sealed.ts'
import type { Log } from '../log/log.ts'
import { onHint } from './hints.ts'
import { isLive, listAllKeys, readKeysVersion } from './keys.ts'
import { CHANGES_READER, CHANGES_SOURCE, SYSTEM } from './scopes.ts'
import { withOpenToken } from './secrets.ts'
import { listWorkspaces } from './workspaces.ts'

const POLL_MS = 500
const UNKNOWN = -1
/** Older knowledge must not let anyone in, nor turn anyone away as unknown. */
export const KEYS_STALE_MS = 10_000

export interface FoundKey {
  readonly key: ApiKey
  readonly workspace: Workspace
}

export interface KeyDirectory {
  /** null: unknown, expired or revoked. `digest` is the hex SHA-256 of the key's text. */
  find(digest: string): FoundKey | null
  workspace(id: string): Workspace | null
  /** How often everything was read: what was found before need not hold after. */
  loads(): number
  /** False once nothing was heard of the control plane for 10 s: answer `unavailable`, never `invalid_api_key`. */
  isFresh(): boolean
  /** The store has lost what it held, until a rebuild: what it does not have cannot be called unknown. */
  isWiped(): boolean
  /** Reads everything again now. Throws Unavailable. */
  reload(): Promise<void>
  close(): void
}

export interface KeyDirectoryNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position'>
  /** A store that is down does not make keys uncertain while `changes` shows that nothing was commanded since. */
  readonly log: Pick<Log, 'last'>
  readonly bus: Bus
  readonly clock: Clock
  /** Opens secrets of tokens; null: none is sealed. */
  readonly sealer: Pick<Sealer, 'open'> | null
  /** What a reload failed with besides Unavailable. */
  readonly report: (error: unknown) => void
}

/** Resolves when all keys are loaded. Throws Unavailable. */
export async function openKeyDirectory(needs: KeyDirectoryNeeds): Promise<KeyDirectory> {
  const { kv, log, bus, clock, report, sealer } = needs
  let keys = new Map<string, FoundKey>()
  let workspaces = new Map<string, Workspace>()
  let version = -1
  /** Where `changes` ended when all of it was known here. */
  let changesSeen = UNKNOWN
  let heardAt = Number.NEGATIVE_INFINITY
  let loading: Promise<void> | null = null
  let again = false
  let loads = 0
  let wiped = false
  const closed = new AbortController()

  /** Keys are not taken for revoked because they are gone together with everything else. */
  async function refuseWiped(): Promise<void> {
    wiped = (await kv.position(SYSTEM, CHANGES_SOURCE)) === null
    if (wiped) throw new Unavailable('the kv has lost its records: run fingerpost rebuild')
  }

  async function load(): Promise<void> {
    const startedAt = clock.monotonic()
    await refuseWiped()
    const nextVersion = await readKeysVersion(kv)
    const found = new Map((await listWorkspaces(kv)).map((one) => [one.id, withOpenToken(sealer, one)]))
    const next = new Map<string, FoundKey>()
    for (const key of await listAllKeys(kv)) {
      const workspace = found.get(key.workspace)
      if (key.revokedAt === null && workspace !== undefined) next.set(key.digest, { key, workspace })
    }
    keys = next
    loads++
    workspaces = found
    version = nextVersion
    heardAt = startedAt
  }

  /** One load at a time; a request during a load makes another one follow, since the running one may be too early. */
  function reload(): Promise<void> {
    if (loading !== null) {
      again = true
      return loading
    }
    loading = (async () => {
      do {
        again = false
        await load()
      } while (again)
    })().finally(() => {
      loading = null
    })
    return loading
  }

  async function poll(): Promise<void> {
    const startedAt = clock.monotonic()
    try {
      const seen = await log.last('changes', 0)
      // In this order: what was applied is in the version.
      const [applied, , found] = await Promise.all([
        kv.position(SYSTEM, CHANGES_READER),
        refuseWiped(),
        readKeysVersion(kv),
      ])
      if (found !== version) await reload()
      changesSeen = applied !== null && applied >= seen ? seen : UNKNOWN
      heardAt = Math.max(heardAt, startedAt)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      if ((await log.last('changes', 0)) === changesSeen) heardAt = startedAt
    }
  }

  async function pollUntilClosed(): Promise<void> {
    while (!closed.signal.aborted) {
      await nextBeat(clock, pollEveryMs(bus, POLL_MS), closed.signal)
      if (closed.signal.aborted) return
      await poll().catch((error) => {
        if (!(error instanceof Unavailable)) report(error)
      })
    }
  }

  await reload()
  const unsubscribe = onHint(bus, 'keys.changed', () => {
    // The poll finds the same change soon, so a failure here is not lost.
    reload().catch((error) => {
      changesSeen = UNKNOWN
      if (!(error instanceof Unavailable)) report(error)
    })
  })
  void pollUntilClosed()

  return {
    find(digest) {
      const found = keys.get(digest)
      return found !== undefined && isLive(found.key, clock.now()) ? found : null
    },
    workspace: (id) => workspaces.get(id) ?? null,
    loads: () => loads,
    isWiped: () => wiped,
    isFresh: () => clock.monotonic() - heardAt < KEYS_STALE_MS,
    reload,
    close() {
      unsubscribe()
      closed.abort()
    },
  }
}
