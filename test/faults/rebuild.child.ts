// Rebuilds the deployment in a folder, in a process of its own that a test kills: once it has told of the named stage, it commits
// nothing more, so that it is killed in the middle of what follows however late the kill comes.

import type { Kv } from '../../src/kv/kv.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openProgress } from '../../src/ops/progress.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { openOps } from '../helpers/deployment.ts'

const [, , dataDir = '', stage = ''] = process.argv
const ops = await openOps(dataDir)
let isTold = false
const out = {
  write(text: string) {
    process.stdout.write(text)
    isTold ||= text.startsWith(stage)
  },
}
const kv: Kv = {
  ...ops.kv,
  commit: (commits) => (isTold ? new Promise<never>(() => {}) : ops.kv.commit(commits)),
}
setInterval(() => undefined, 60_000)
await rebuild({ ...ops, kv, progress: openProgress(out, systemClock) })
