// Records of identifications: what is written by hand is what JSON.stringify writes, whatever a client sent.

import { createHash } from 'node:crypto'
import t from 'tap'
import { EVIDENCE_HEADERS, type IdentifyMeta } from '../../src/domain/identify.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import { decodeIdentification, encodeIdentification, takeApart } from '../../src/records/identification.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const RECORDS = 500
const LETTERS = ['"', '\\', '/', '\n', '\0', '\x7f', '\u2028', '\ud800', '\udc00', '😀', 'ü', 'a', ' ', '<']

const META: IdentifyMeta = {
  requestId: 'req_01JD8M2Q3R4S5T6V7W8X9Y0Z12',
  acceptedAt: Date.UTC(2026, 10, 20),
  workspace: 'ws_1',
  env: 'live',
  keyKind: 'public',
  ip: '2001:db8::1',
  headers: {},
  token: null,
  tokenForged: false,
  replyTo: 'ing_1/0',
}

/** As records were always written. */
function plainly(meta: IdentifyMeta, body: Uint8Array): Buffer {
  const head = Buffer.from(JSON.stringify(meta))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  return Buffer.concat([length, head, body])
}

t.test('a record is the length of its head, the head as JSON and the body as it came', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const { int, bytes } = rng(seed)
  const text = () => Array.from({ length: int(12) }, () => LETTERS[int(LETTERS.length)]).join('')
  const records: { readonly meta: IdentifyMeta; readonly body: Buffer; readonly record: Uint8Array }[] = []
  for (let i = 0; i < RECORDS; i++) {
    const names = EVIDENCE_HEADERS.filter(() => int(3) === 0)
    const claims = { visitorId: 'pv_00000000000000000001', generation: int(2 ** 31), issuedAt: int(2 ** 31) * 100 }
    const made: IdentifyMeta = {
      ...META,
      requestId: makeRequestId(META.acceptedAt + i, bytes),
      acceptedAt: META.acceptedAt + i,
      workspace: int(10) === 0 ? text() : 'ws_1',
      env: int(2) === 0 ? 'live' : 'test',
      headers: Object.fromEntries(names.map((name) => [name, text()])),
      token: int(2) === 0 ? null : claims,
      tokenForged: int(2) === 0,
      replyTo: int(10) === 0 ? text() : 'ing_1/0',
    }
    const meta = int(2) === 0 ? made : { ...made, trace: text() }
    const body = Buffer.from(
      JSON.stringify({ url: text(), tag: { filled: 'x'.repeat(int(10) === 0 ? 60_000 : 3_000) } }),
    )
    records.push({ meta, body, record: encodeIdentification(meta, body) })
  }
  // Compared when all were written: none may be written over.
  for (const { meta, body, record } of records) {
    if (plainly(meta, body).compare(record) !== 0) t.fail(JSON.stringify(meta))
    const decoded = decodeIdentification(record)
    if (JSON.stringify(decoded.meta) !== JSON.stringify(meta) || body.compare(decoded.body) !== 0) t.fail('decoded')
  }
  t.equal(records.length, RECORDS)
})

t.test('the hash of a body is the beginning of its SHA-1, and there is one where there is a nonce', async (t) => {
  const hashOf = (json: string) => takeApart(encodeIdentification(META, Buffer.from(json))).facts.bodyHash
  t.equal(hashOf('{}'), 0)
  const json = '{"nonce":"0123456789abcdef"}'
  const digest = createHash('sha1').update(json).digest('hex')
  t.equal(hashOf(json), Number.parseInt(digest.slice(0, 12), 16))
})
