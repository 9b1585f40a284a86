// Signatures against vectors worked out by hand with openssl, and against the reference verifier of Standard Webhooks.

import { execFileSync } from 'node:child_process'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import t from 'tap'
import { bodyFor, deliveryHeaders, renderPayload, secretsAt } from '../../src/dispatcher/envelope.ts'
import { sampleOf } from '../../src/dispatcher/samples.ts'
import { EVENT_TYPES, PAYLOAD_BYTES_MAX } from '../../src/domain/webhook.ts'
import { signBody, signBodyAlone, signStandard, verifyWebhook } from '../../src/domain/webhook-signature.ts'
import { must } from '../../src/lib/must.ts'

const SECRET = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
const NEXT = `whsec_${Buffer.from('fedcba9876543210fedcba9876543210').toString('base64')}`
const AT = Date.UTC(2026, 10, 21, 12)
const BODY = Buffer.from('{"event":"identification","ü":1}')
const openssl = (key: string, text: string | Buffer) =>
  execFileSync('openssl', ['dgst', '-sha256', '-hmac', key, '-hex'], { input: text })
    .toString('utf8')
    .trim()
    .split(' ')
    .at(-1)
const sending = {
  shape: 'A',
  type: 'identification.complete',
  eventId: 'evt_1',
  body: BODY,
  nowMs: AT,
  userAgent: 'x',
} as const

t.test('the documented vector', async (t) => {
  const signature = signBody('whsec_dGVzdA==', 1_700_000_000, Buffer.from('{"a":1}'))
  t.equal(signature, 'sha256=5f546eef70c9127caf7facd578ef04d95f9e33625fb033341afc26bcfa798657')
})

t.test('both digests are what openssl makes of the same bytes', async (t) => {
  const seconds = AT / 1_000
  t.equal(
    signBody(SECRET, seconds, BODY),
    `sha256=${openssl(SECRET, Buffer.concat([Buffer.from(`${seconds}.`), BODY]))}`,
  )
  t.equal(signBodyAlone(SECRET, BODY), `sha256=${openssl(SECRET, BODY)}`)
})

t.test(
  'the reference verifier of Standard Webhooks accepts both shapes, and either secret in a grace period',
  async (t) => {
    const now = Date.now()
    for (const [type, shape] of [
      ['identification.complete', 'A'],
      ['visitor.new', 'B'],
    ] as const) {
      const payload = renderPayload(sampleOf(type, now, 'x'), '2026-11-01', new Set([shape]))
      const body = must(bodyFor({ id: 'wh_1', shape }, payload))
      const secrets = { main: SECRET, next: NEXT }
      const headers = deliveryHeaders({ ...sending, shape, type, body, secrets, nowMs: now })
      for (const secret of [SECRET, NEXT]) {
        t.same(new StandardWebhook(secret).verify(body.toString('utf8'), headers), JSON.parse(body.toString('utf8')))
      }
      const other = `whsec_${Buffer.alloc(32).toString('base64')}`
      t.throws(() => new StandardWebhook(other).verify(body.toString('utf8'), headers))
    }
  },
)

t.test("a customer's own secret has no signature of that scheme, and the rest of the headers", async (t) => {
  const own = deliveryHeaders({ ...sending, secrets: { main: 'a secret of the customer', next: null } })
  t.notOk('webhook-signature' in own)
  t.equal(own['X-Service-Signature'], signBody('a secret of the customer', AT / 1_000, BODY))
  t.equal(signStandard('whsec_c2hvcnQ=', 'evt_1', 1, BODY), null, 'too short')
  t.same(Object.keys(deliveryHeaders({ ...sending, secrets: { main: SECRET, next: null } })), [
    ...['Content-Type', 'User-Agent', 'X-Service-Signature', 'X-Service-Signature-Body', 'X-Service-Event'],
    ...['X-Service-Delivery', 'X-Service-Timestamp', 'webhook-id', 'webhook-timestamp', 'webhook-signature'],
  ])
})

t.test('until a grace period ends the older secret signs, then the newer one alone', async (t) => {
  const secrets = [
    { sealed: 'new', createdAt: AT, expiresAt: null },
    { sealed: 'old', createdAt: 0, expiresAt: AT + 1_000 },
  ]
  const open = (sealed: string) => sealed
  t.same(secretsAt(secrets, AT + 999, open), { main: 'old', next: 'new' })
  t.same(secretsAt(secrets, AT + 1_000, open), { main: 'new', next: null })
  const headers = deliveryHeaders({ ...sending, secrets: { main: SECRET, next: NEXT } })
  t.equal(headers['X-Service-Signature-Next'], signBody(NEXT, AT / 1_000, BODY))
})

t.test('every type has a sample, and data that is too long shrinks to what it is about', async (t) => {
  for (const type of EVENT_TYPES) {
    const payload = renderPayload(sampleOf(type, AT, 'x'), '2026-11-01', new Set(['B']))
    const envelope = JSON.parse(must(bodyFor({ id: 'wh_1', shape: 'B' }, payload)).toString('utf8'))
    t.match(envelope, {
      webhookId: 'wh_1',
      eventType: type,
      createdAt: '2026-11-21T12:00:00.000Z',
      data: { test: true },
    })
  }
  const sample = sampleOf('identification.complete', AT, 'x')
  for (const [chars, truncated] of [
    [PAYLOAD_BYTES_MAX - 5_000, undefined],
    [PAYLOAD_BYTES_MAX, true],
  ] as const) {
    const long = { ...sample, data: { ...sample.data, more: 'x'.repeat(chars) } }
    const body = must(bodyFor({ id: 'wh_1', shape: 'B' }, renderPayload(long, '2026-11-01', new Set(['B']))))
    t.ok(body.length <= PAYLOAD_BYTES_MAX)
    const { data } = JSON.parse(body.toString('utf8'))
    t.equal(data.truncated, truncated)
    t.equal(data.requestId, sample.data.requestId)
  }
})

t.test('the verifier believes only what is fresh and signed with the secret', async (t) => {
  const [secret, body, now] = ['whsec_dGVzdA==', Buffer.from('{"a":"ü"}'), 1_700_000_000_000]
  const signed = (seconds: number, key = secret) => ({
    'X-Service-Timestamp': String(seconds),
    'X-Service-Signature': signBody(key, seconds, body),
  })
  const at = now / 1_000
  for (const offset of [-300, 0, 300]) t.ok(verifyWebhook(body, signed(at + offset), secret, { now }), `${offset} s`)
  for (const offset of [-301, 301]) t.notOk(verifyWebhook(body, signed(at + offset), secret, { now }), `${offset} s`)
  t.ok(verifyWebhook(body.toString(), new Headers(signed(at)), secret, { now }), 'as text, and with Headers')
  t.notOk(verifyWebhook(Buffer.from('{"a":"u"}'), signed(at), secret, { now }))
  t.notOk(verifyWebhook(body, signed(at, 'whsec_other'), secret, { now }))
  t.notOk(verifyWebhook(body, {}, secret, { now }))
  t.notOk(verifyWebhook(body, { ...signed(at), 'X-Service-Signature': 'sha256=' }, secret, { now }))
})

t.test('a verifier without a secret is a mistake, not one that anybody can sign for', async (t) => {
  const body = Buffer.from('{}')
  const forged = { 'x-service-timestamp': '1700000000', 'x-service-signature': signBody('', 1_700_000_000, body) }
  const now = 1_700_000_000_000
  for (const secret of ['', undefined as unknown as string]) {
    t.throws(() => verifyWebhook(body, forged, secret, { now }), /secret/)
    t.throws(() => verifyWebhook(body, {}, secret, { now }), /secret/, 'before anything of the request is looked at')
  }
})
