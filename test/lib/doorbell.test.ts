// A thread that sleeps is woken by a message, and does not sleep over one.

import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import t from 'tap'
import { openBell, ringing } from '../../src/lib/doorbell.ts'

const [SELF, OTHER] = [1, 0]
/** Whoever sleeps for as long has the test time out. */
const FOR_EVER_MS = 3_600_000

t.test('a message wakes the thread it is for, which then has it', async (t) => {
  const bells = new Int32Array(new SharedArrayBuffer(8))
  const { port1, port2 } = new MessageChannel()
  const thread = new Worker(new URL('./doorbell.thread.js', import.meta.url), {
    workerData: { port: port2, bells, index: SELF },
    transferList: [port2],
  })
  await once(thread, 'message')
  const bell = openBell(bells, SELF)
  const rings = bell.rings()
  thread.postMessage('now')
  bell.sleep(rings, FOR_EVER_MS)
  t.equal(bell.rings(), rings + 1)
  t.equal((await once(port1, 'message'))[0], 'sent')
  port1.close()
  await thread.terminate()
})

t.test('what was sent before the sleep is not slept over, and what others were sent is', async (t) => {
  const bells = new Int32Array(new SharedArrayBuffer(8))
  const port = { postMessage: () => undefined, on: () => undefined }
  const bell = openBell(bells, SELF)
  const rings = bell.rings()
  ringing(port, bells, OTHER).postMessage('for another', [], true)
  bell.sleep(rings, 1)
  t.equal(bell.rings(), rings, 'it slept for as long as it may')
  ringing(port, bells, SELF).postMessage('for when it is awake', [], false)
  t.equal(bell.rings(), rings, 'what need not wake it does not')
  ringing(port, bells, SELF).postMessage('for this one', [], true)
  bell.sleep(rings, FOR_EVER_MS)
  t.equal(bell.rings(), rings + 1)
})
