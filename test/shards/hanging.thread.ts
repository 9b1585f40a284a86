// A thread that listens, as a shard does, and hangs when it is told to.

import { parentPort } from 'node:worker_threads'
import { must } from '../../src/lib/must.ts'
import { openTestServer } from '../helpers/http.ts'

const parent = must(parentPort, 'a thread')
const http = await openTestServer()
process.on('exit', () => http.close())
parent.on('message', (order) => {
  if (order === 'end') process.exit()
  for (;;);
})
parent.postMessage('listening')
