// Entry of a short-lived thread that loads or compiles the tables it is told of, so that no decision waits for it, and hands
// each over as shared memory.

import { parentPort, workerData } from 'node:worker_threads'
import { must } from '../lib/must.ts'
import { type LoadJob, loadSource } from './load.ts'

const port = must(parentPort, 'a thread that started this one')
for (const job of workerData as readonly LoadJob[]) port.postMessage(await loadSource(job, Date.now()))
