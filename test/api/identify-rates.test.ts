// Identifications per second, by client address and by workspace, where an operator limits them; and what such limits leave alone.

import t from 'tap'
import { type Answer, CHROME, errorOf, openApi } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'

t.teardown(cleanUp)

const { identify, get, server } = await openApi({
  FINGERPOST_INGRESS_PER_IP_PER_SECOND_MAX: '5',
  FINGERPOST_INGRESS_PER_WORKSPACE_PER_SECOND_MAX: '12',
  FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32',
})
const TRIES_MAX = 20
const from = (address: string, key = server.keys.public) =>
  identify({ components: {} }, { key, headers: { 'X-Forwarded-For': address, 'User-Agent': CHROME } })

/** Waits for the beginning of a second, so that what follows is in one. */
const nextSecond = () => new Promise((resolve) => setTimeout(resolve, 1_000 - (Date.now() % 1_000) + 5))

/** Answers of calls that were all made within one second; where the machine stood still, those of later ones. */
async function withinOneSecond(ask: () => Promise<Answer[]>): Promise<Answer[]> {
  for (let tries = 1; ; tries++) {
    await nextSecond()
    const second = Math.floor(Date.now() / 1_000)
    const answers = await ask()
    if (Math.floor(Date.now() / 1_000) === second || tries === TRIES_MAX) return answers
  }
}

t.test('an address may identify so many times a second, and then again', async (t) => {
  const answers = await withinOneSecond(() => Promise.all(Array.from({ length: 8 }, () => from('203.0.113.1'))))
  const refused = answers.filter(({ status }) => status === 429)
  t.equal(refused.length, 3)
  for (const answer of refused) {
    t.same(errorOf(answer), { code: 'rate_limited', field: undefined })
    t.equal(answer.headers.get('retry-after'), '1')
    t.equal(answer.headers.get('x-ratelimit-limit'), null, 'identify is in no class')
    t.equal(answer.headers.get('access-control-allow-origin'), '*', 'a page can read it')
  }
  await nextSecond()
  t.equal((await from('203.0.113.1')).status, 200)
})

t.test('a workspace may identify so many times a second, from wherever', async (t) => {
  const answers = await withinOneSecond(() =>
    Promise.all(Array.from({ length: 20 }, (_, i) => from(`203.0.113.${100 + i}`))),
  )
  t.equal(answers.filter(({ status }) => status === 429).length, 8)
  t.equal((await get('/v1/events')).status, 200, 'reads are not limited by it')
})

t.test('who is not authenticated is told that first', async (t) => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => from('203.0.113.9', 'pk_live_wrong')))
  t.ok(answers.every(({ status }) => status === 401))
})
