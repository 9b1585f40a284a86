// A shard that hangs costs its process nothing but that shard.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { closeHanging } from '../../src/shards/interrupt.ts'

const entry = new URL('./hanging.thread.js', import.meta.url)

t.test('a thread that hangs with its listener open is ended, and the process lives on', async (t) => {
  const thread = new Worker(entry)
  await once(thread, 'message')
  thread.postMessage('hang')
  await closeHanging(thread.threadId)
  t.equal(await thread.terminate(), 1)
})

t.test('other threads are left alone', async (t) => {
  const [hanging, other] = [new Worker(entry), new Worker(entry)]
  await Promise.all([once(hanging, 'message'), once(other, 'message')])
  hanging.postMessage('hang')
  await closeHanging(hanging.threadId)
  await hanging.terminate()
  t.not(other.threadId, -1)
  other.postMessage('end')
  t.same(await once(other, 'exit'), [0])
})

t.test('a thread that is gone does not answer, which is an error', async (t) => {
  const thread = new Worker(entry)
  await once(thread, 'message')
  const { threadId } = thread
  thread.postMessage('end')
  await once(thread, 'exit')
  await t.rejects(closeHanging(threadId), /does not answer/)
})
