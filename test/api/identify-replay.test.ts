// POST /v1/identify against a real server: the same nonce again. Decisions that are late, and no room to accept anything:
// test/faults/late-or-full.test.ts.

import t from 'tap'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { browserBody, errorOf } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify } = await openTenant()
const { keys } = server

let nonces = 0
const newNonce = () => `nonce-of-a-test-${String(++nonces).padStart(6, '0')}`

t.test('the same nonce is the same event', async (t) => {
  const body = { ...browserBody(), nonce: newNonce(), email: 'x@y.example', url: '', tag: { n: 1.5, s: '💡' } }
  const first = await identify(body)
  t.equal(first.headers.get('idempotent-replayed'), null)
  const again = await identify(body)
  t.equal(again.status, 200)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(again.text, first.text, 'to the byte')
  const asPublic = await identify(body, { key: keys.public })
  t.equal(asPublic.headers.get('idempotent-replayed'), 'true')
  t.same(shapes.publicResult(asPublic.body), [], 'in the form of the key that asks')
  t.equal(asPublic.body.requestId, first.body.requestId)
  const inTestEnv = await identify(body, { key: keys.testSecret })
  t.equal(inTestEnv.headers.get('idempotent-replayed'), null, 'another environment knows nothing of it')
  t.equal(NONCE_WINDOW_MS, 120_000)
})

t.test('a nonce that is used for something else is refused, wherever the body would lead', async (t) => {
  const variants: object[] = [
    { linkedId: 'someone-else' },
    { userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1' },
    { components: { ...browserBody().components, webGlBasics: { value: { renderer: 'Mali-G78' } } } },
    { ip: '198.51.100.77' },
    { native: { platform: 'android', model: 'Pixel 9' } },
    { tag: { a: 1 } },
  ]
  for (let i = 0; i < 4; i++) {
    const body = { ...browserBody(), nonce: newNonce(), linkedId: `user-${i}` }
    const first = await identify(body)
    for (const variant of variants) {
      const answer = await identify({ ...body, ...variant })
      t.equal(answer.status, 409, JSON.stringify(variant).slice(0, 60))
      t.same(errorOf(answer), { code: 'idempotency_conflict', field: 'nonce' })
    }
    const { storageToken } = first.body
    t.equal((await identify({ ...body, storageToken })).status, 409, 'also when a token routes it')
    t.equal((await identify(body)).text, first.text, 'and the first still stands')
  }
})

t.test('repeats that arrive together make one event', async (t) => {
  const body = { ...browserBody(), nonce: newNonce() }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => identify(body, { key: i % 2 ? keys.public : keys.secret })),
  )
  t.equal(new Set(answers.map((a) => a.body.requestId)).size, 1)
  t.equal(answers.filter((a) => a.headers.get('idempotent-replayed') === null).length, 1)
  for (const [i, { status, body: result }] of answers.entries()) {
    t.equal(status, 200)
    t.same((i % 2 ? shapes.publicResult : shapes.secretResult)(result), [], 'each in the form of its own key')
  }
  const mixed = newNonce()
  const rivals = await Promise.all(Array.from({ length: 20 }, (_, i) => identify({ nonce: mixed, linkedId: `u${i}` })))
  t.equal(rivals.filter((a) => a.status === 200).length, 1)
  t.equal(rivals.filter((a) => a.status === 409).length, 19)
})
