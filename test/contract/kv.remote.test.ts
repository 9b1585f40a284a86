// The kv as a thread sees it that has no connection of its own, over a real channel with LMDB behind it: the common guarantees.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import type { Kv } from '../../src/kv/kv.ts'
import { openKv } from '../../src/kv/open.ts'
import { openRemoteKv, serveKv } from '../../src/kv/remote.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openLine } from '../../src/lib/line.ts'
import { kvContract, UNSORTED } from './kv.ts'

kvContract(t, 'remote', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'kv-remote-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))

  /** What threads do not use goes to the kv behind it: `commitTogether`, `walk` and `usage`. */
  async function open(): Promise<Kv> {
    const behind = await openKv({ backend: 'lmdb', dataDir, clock: systemClock, sweepEveryMs: 20, unsorted: UNSORTED })
    const { port1, port2 } = new MessageChannel()
    const fail = (error: unknown) => t.fail(String(error))
    serveKv(openLine(port1, fail), behind)
    const remote = openRemoteKv(openLine(port2, fail), systemClock)
    async function end(): Promise<void> {
      // Behind the calls made before it.
      await remote.position('system', 'none')
      await behind.close()
    }
    t.teardown(() => port1.close())
    let ended: Promise<void> | null = null
    return {
      ...behind,
      ...remote,
      close() {
        ended ??= end()
        return ended
      },
    }
  }

  let kv = await open()
  return {
    kv,
    reopen: async () => {
      await kv.close()
      kv = await open()
      t.teardown(() => kv.close())
      return kv
    },
  }
})
