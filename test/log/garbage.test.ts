// What passes through the log of a thread is garbage once it is appended, read and answered: it must not reach V8's old generation, where
// it would stay until all of the heap is marked (D227).

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

const built = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)

/** Prints the share of the bytes that passed through each which was promoted, in thousandths. */
const PROMOTED = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { openApi } from ${built('log/jetstream-api.js')}
  import { openOrigins } from ${built('log/origins.js')}
  import { systemClock } from ${built('lib/clock.js')}

  const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size
  /** In place of bytes, which lie outside of the heap. */
  const makeBody = (n) => ({ length: 800, filling: new Array(100).fill(n) })
  const BODY_BYTES = 900
  const UNDER_WAY = 40

  async function promotedBy(step, steps = 60_000) {
    let n = 0
    while (n < 2_000) await step(n++)
    gc()
    gc()
    let promoted = 0
    let last = old()
    const from = n
    while (n < steps) {
      const wait = step(n++)
      if (wait !== undefined) await wait
      if (n % 100 !== 0) continue
      // A mark-compact takes back what was promoted before it.
      const now = old()
      promoted += Math.max(0, now - last)
      last = now
    }
    return Math.round((1_000 * promoted) / ((n - from) * BODY_BYTES))
  }

  const origins = openOrigins()
  const byOrigins = await promotedBy((n) => {
    const seq = n + 1
    origins.keep('m' + seq, [makeBody(n)])
    if (seq > UNDER_WAY) origins.stored('m' + (seq - UNDER_WAY), seq - UNDER_WAY)
    if (seq % 8 === 0) origins.attach([{ seq: seq - UNDER_WAY, bytes: new Uint8Array(0) }])
  })

  // A server that answers some turns later.
  let hear = null
  const unanswered = []
  const connection = {
    status: () => (async function* () {})(),
    closed: () => new Promise(() => {}),
    subscribe: (_, { callback }) => (hear = callback),
    publish: (subject, data, { reply }) => unanswered.push(reply),
  }
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const { request } = openApi(connection, systemClock)
  const byRequests = await promotedBy(async (n) => {
    for (let i = 0; i < 9; i++) makeBody(i)
    void request('subject', makeBody(n), { timeoutMs: 5_000 })
    if (n % 4 !== 0) return
    await turn()
    for (const reply of unanswered.splice(0, unanswered.length - UNDER_WAY)) hear(null, { subject: reply, data: null })
  }, 20_000)
  console.log(JSON.stringify({ byOrigins, byRequests }))
  process.exit()`

t.test('what was read and answered is not promoted', async (t) => {
  const args = ['--expose-gc', '--max-semi-space-size=1', '--input-type=module', '--eval', PROMOTED]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const { byOrigins, byRequests } = JSON.parse(stdout) as Record<string, number>
  t.comment(stdout.trim())
  t.ok((byOrigins as number) < 300, 'by what records were made of')
  t.ok((byRequests as number) < 300, 'by requests')
})
