// A thread that sends a message over a port that rings, as soon as it is told to.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { ringing } from '../../src/lib/doorbell.ts'
import { must } from '../../src/lib/must.ts'

const { port, bells, index } = workerData as { port: MessagePort; bells: Int32Array; index: number }
const line = ringing(port, bells, index)
must(parentPort, 'a thread').once('message', () => line.postMessage('sent', [], true))
must(parentPort, 'a thread').postMessage('ready')
