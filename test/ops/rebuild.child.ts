// Rebuilds the deployment in a folder, in a process of its own that a test may kill.

import { systemClock } from '../../src/lib/clock.ts'
import { openProgress } from '../../src/ops/progress.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { openOps } from './deployment.ts'

const [, , dataDir = ''] = process.argv
const ops = await openOps(dataDir)
const done = await rebuild({ ...ops, progress: openProgress(process.stdout, systemClock) })
process.stdout.write(`done: ${JSON.stringify(done)}\n`)
await ops.close()
