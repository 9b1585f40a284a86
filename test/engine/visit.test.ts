// A case: what is decided is the same whether the engine reads the record's bytes or is given what was parsed of them.

import t from 'tap'
import type { IdentifyBody, IdentifyMeta } from '../../src/domain/identify.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import { decodeFrame, visitOf } from '../../src/engine/visit.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { NO_FACTS } from '../../src/ipintel/addresses.ts'
import { encodeIdentification, factsOf } from '../../src/records/identification.ts'
import { rng } from '../helpers/rng.ts'

const AT_MS = Date.UTC(2026, 10, 20)
const META: IdentifyMeta = {
  requestId: makeRequestId(AT_MS, rng(1).bytes),
  acceptedAt: AT_MS,
  workspace: 'ws_1',
  env: 'live',
  keyKind: 'public',
  ip: '203.0.113.7',
  headers: { 'user-agent': 'Mozilla/5.0' },
  token: null,
  tokenForged: false,
  replyTo: 'here',
}

const BODIES: Readonly<Record<string, string>> = {
  plain: '{"nonce":"n1","linkedId":"user","tag":{"a":["b",1,null]}}',
  'half of a pair': '{"nonce":"n1","tag":{"a\\ud800":["\\uDC00b",{"c":"\\udfff"}]}}',
  'a whole pair': '{"tag":{"a":"\\ud83d\\ude00"}}',
  'an escaped backslash before': '{"tag":{"a":"\\\\ud800"}}',
  'other escapes': '{"tag":{"a":"\\n\\u00e9\\""}}',
  'beyond ASCII': '{"tag":{"é":"😀"}}',
}

t.test('a body that was parsed already makes the same case as its bytes', async (t) => {
  for (const [name, text] of Object.entries(BODIES)) {
    const bytes = new TextEncoder().encode(text)
    const frame = { seq: 5, bytes: encodeIdentification(META, bytes) }
    const read = visitOf(5, decodeFrame(frame), openParsers(), () => NO_FACTS)
    const parsed = JSON.parse(text) as IdentifyBody
    const decoded = { meta: META, body: parsed, facts: factsOf(bytes, parsed) }
    t.same(
      visitOf(5, decoded, openParsers(), () => NO_FACTS),
      read,
      name,
    )
  }
})

t.test('halves of surrogate pairs are replaced before anything reads them', async (t) => {
  const text = BODIES['half of a pair'] as string
  const bytes = new TextEncoder().encode(text)
  const parsed = JSON.parse(text) as IdentifyBody
  const decoded = { meta: META, body: parsed, facts: factsOf(bytes, parsed) }
  const { body } = visitOf(5, decoded, openParsers(), () => NO_FACTS)
  t.same(body.tag, { 'a\ufffd': ['\ufffdb', { c: '\ufffd' }] })
})

t.test('bytes that are no UTF-8 or no JSON are no case', async (t) => {
  for (const bytes of [Uint8Array.of(0x7b, 0xff, 0x7d), new TextEncoder().encode('{')]) {
    const frame = { seq: 5, bytes: encodeIdentification(META, bytes) }
    t.throws(() => decodeFrame(frame))
  }
})

t.test('names that clients make up are one family of what is learned, whatever engine they claim', async (t) => {
  const familyOf = (userAgent: string): string => {
    const decoded = {
      meta: { ...META, headers: { 'user-agent': userAgent } },
      body: {},
      facts: { bodyHash: 0, mayHoldHalves: false },
    }
    return visitOf(5, decoded, openParsers(), () => NO_FACTS).familyId
  }
  const phone = '(iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)'
  const desktop = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0'
  const families: readonly (readonly [string, string])[] = [
    [`Mozilla/5.0 ${phone} Version/18.0 Mobile/15E148 Safari/604.1`, 'ws_1/live/iOS/Safari'],
    [`Mozilla/5.0 ${phone} CriOS/147.0 Mobile/15E148 Safari/604.1`, 'ws_1/live/iOS/Chrome'],
    [`${desktop} Safari/537.36`, 'ws_1/live/Windows/Chrome'],
    [`Mozilla/5.0 ${phone} Mobile/15E148`, 'ws_1/live/iOS/iOS WebView'],
    ['Shop/1.0 (iPhone; iOS 18.6)', 'ws_1/live/iOS/other'],
    ['Ship/1.0 (iPhone; iOS 18.6)', 'ws_1/live/iOS/other'],
    [`${desktop} Safari/537.36 Firstbot/1.0`, 'ws_1/live/Windows/other'],
    [`${desktop} Safari/537.36 Secondbot/1.0`, 'ws_1/live/Windows/other'],
    ['anything/1.0', 'ws_1/live/other/other'],
  ]
  for (const [userAgent, family] of families) t.equal(familyOf(userAgent), family, userAgent)
})
