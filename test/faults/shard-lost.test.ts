// A shard whose thread throws is started again: the process and its other shards go on answering, and what was accepted is decided.

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { browserBody, clientOf } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { inParallel } from '../helpers/http.ts'
import { until } from '../helpers/processes.ts'
import { cleanUp, historyOpen, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const LOSSES = sized({ quick: 2, usual: 2, long: 8 })
const CALLERS = 8
const THROW_AGAIN_MS = 3_000
const LOST = 'a shard was lost and is started again'

t.test('a shard that throws under load costs nothing that was accepted, and the others go on', async (t) => {
  const file = join(temporaryFolder(), 'throw')
  const server = await startServer({
    env: { FINGERPOST_ENGINE_THREADS: '3', FINGERPOST_ENGINE_THREADS_MIN: '3', THROW_FILE: file },
    nodeArgs: ['--import', new URL('../helpers/throw-hook.js', import.meta.url).href],
  })
  await historyOpen(server)
  const { identify, get } = clientOf(server)
  const accepted: string[] = []
  const statuses = new Set<number>()
  let unanswered = 0
  let isOver = false

  async function call(caller: number): Promise<void> {
    for (let n = 0; !isOver; n++) {
      // A connection that its thread took along fails: nothing was promised on it.
      const answer = await identify(browserBody(`GPU ${caller} ${n % 5}`)).catch(() => null)
      if (answer === null) unanswered++
      else {
        statuses.add(answer.status)
        if (answer.status === 200 || answer.status === 202) accepted.push(answer.body.requestId)
      }
    }
  }
  const callers = Array.from({ length: CALLERS }, (_, caller) => call(caller))
  const losses = () => server.logs().split(LOST).length - 1
  for (let loss = 1; loss <= LOSSES; loss++) {
    await until('load', 30_000, () => accepted.length >= loss * 60)
    const lostBefore = losses()
    let thrownAt = Number.NEGATIVE_INFINITY
    await until('the loss', 30_000, () => {
      // A thread that is only starting may have taken the file, and nothing is lost by its end.
      if (!existsSync(file) && losses() === lostBefore && performance.now() - thrownAt > THROW_AGAIN_MS) {
        writeFileSync(file, '')
        thrownAt = performance.now()
      }
      return losses() > lostBefore
    }).catch((error: Error) => {
      t.comment(server.logs().slice(-4_000))
      throw error
    })
    const before = accepted.length
    await until('answers after the loss', 30_000, () => accepted.length > before + 60)
  }
  isOver = true
  await Promise.all(callers)
  t.comment(`${accepted.length} accepted, ${unanswered} unanswered, statuses ${[...statuses]}`)
  t.ok(unanswered <= losses() * CALLERS, `${unanswered} calls were not answered`)
  t.same(
    [...statuses].filter((status) => ![200, 202, 503].includes(status)),
    [],
  )
  await until('readiness', 30_000, async () => (await get('/readyz')).status === 200)
  await inParallel(accepted, CALLERS, async (requestId) => {
    const { status } = await get(`/v1/events/${requestId}`)
    if (status !== 200) t.fail(`${requestId} was accepted and is ${status}`)
  })
  t.equal(new Set(accepted).size, accepted.length)
  t.equal(await server.stop(), 0)
})
