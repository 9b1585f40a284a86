// What passes through the log of a thread is garbage once it is appended, read and answered: it must not reach V8's old generation, where
// it would stay until all of the heap is marked (D227).

import t from 'tap'
import { built, measurePromoted } from '../helpers/promoted.ts'

/** Prints the share of the bytes that passed through each which was promoted, in thousandths. */
const SHARES = `
  import { openApi } from ${built('log/jetstream-api.js')}
  import { openOrigins } from ${built('log/origins.js')}
  import { systemClock } from ${built('lib/clock.js')}

  /** In place of bytes, which lie outside of the heap. */
  const makeBody = (n) => ({ length: 800, filling: new Array(100).fill(n) })
  const BODY_BYTES = 900
  const UNDER_WAY = 40

  async function shareBy(step, steps) {
    return Math.round((1_000 * (await promotedBy(step, steps))) / ((steps - WARM_STEPS) * BODY_BYTES))
  }

  const origins = openOrigins()
  const byOrigins = await shareBy((n) => {
    const seq = n + 1
    origins.keep('m' + seq, [makeBody(n)])
    if (seq > UNDER_WAY) origins.stored('m' + (seq - UNDER_WAY), seq - UNDER_WAY)
    if (seq % 8 === 0) origins.attach([{ seq: seq - UNDER_WAY, bytes: new Uint8Array(0) }])
  }, 60_000)

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
  const byRequests = await shareBy(async (n) => {
    for (let i = 0; i < 9; i++) makeBody(i)
    void request('subject', makeBody(n), { timeoutMs: 5_000 })
    if (n % 4 !== 0) return
    await turn()
    for (const reply of unanswered.splice(0, unanswered.length - UNDER_WAY)) hear(null, { subject: reply, data: null })
  }, 20_000)
  console.log(JSON.stringify({ byOrigins, byRequests }))
  process.exit()`

t.test('what was read and answered is not promoted', async (t) => {
  const shares = (await measurePromoted(SHARES)) as Record<string, number>
  t.comment(JSON.stringify(shares))
  const { byOrigins, byRequests } = shares
  t.ok((byOrigins as number) < 300, 'by what records were made of')
  t.ok((byRequests as number) < 300, 'by requests')
})
