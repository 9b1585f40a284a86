// Which partition an identification is handed over to before it is parsed: a guess that may be wrong and is never needed.

import t from 'tap'
import { makeDevice } from '../../bench/population.ts'
import type { IdentifyBody } from '../../src/domain/identify.ts'
import { homePartition } from '../../src/domain/ids.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { hardwareKey, hardwarePartition } from '../../src/identity/routing.ts'
import { signToken } from '../../src/identity/token.ts'
import { partitionNamedBy } from '../../src/ingress/hand-over.ts'
import { partitionSeemingIn } from '../../src/ingress/hardware-in-body.ts'
import type { Caller } from '../../src/records/auth.ts'

const PARTITIONS = 4_096
const tokenOf = (visitorId: string, secret = 'a secret of this workspace') =>
  signToken(secret, 'ws_1', 'live', { visitorId, generation: 1, issuedAt: Date.UTC(2026, 10, 20) })
const OWN = 'pv_abcdefghijABCDEFGHIJ'
const OTHER = 'pv_00000000000000000001'
const own = homePartition(OWN, PARTITIONS)
const other = homePartition(OTHER, PARTITIONS)
const token = tokenOf(OWN)
const rest = '"nonce":"0123456789abcdef","url":"https://shop.example/ü"'

// what is sent, cookie, partition
const ROWS: readonly (readonly [name: string, body: string, cookie: string | null, partition: number | null])[] = [
  ['a token first', `{"storageToken":"${token}",${rest}}`, null, own],
  ['a token behind other members', `{${rest},"storageToken":"${token}"}`, null, own],
  ['a token in the body beside one in the cookie', `{"storageToken":"${token}"}`, tokenOf(OTHER), own],
  ['whitespace behind the colon', `{"storageToken": "${token}"}`, null, null],
  ['whitespace before the colon', `{"storageToken" :"${token}"}`, null, null],
  ['a line break behind the colon', `{"storageToken":\n"${token}"}`, null, null],
  ['an escape in the name', `{"storageToke\\u006e":"${token}"}`, null, null],
  ['another spelling beside a cookie', `{"storageToken": "${token}"}`, tokenOf(OTHER), other],
  ['a forged token', `{"storageToken":"${tokenOf(OWN, 'another secret')}"}`, null, own],
  ['a token of another form', '{"storageToken":"st_short"}', null, null],
  ['a token of another form beside a cookie', '{"storageToken":"st_short"}', tokenOf(OTHER), null],
  ['a token that names no visitor', `{"storageToken":"st_${'-'.repeat(64)}"}`, null, null],
  ['a token that is cut off', `{"storageToken":"${token.slice(0, -1)}`, null, null],
  ['a token in the cookie alone', `{${rest}}`, token, own],
  ['a token in the cookie and null in the body', `{"storageToken":null,${rest}}`, token, own],
  ['something else in the cookie', `{${rest}}`, 'st_short', null],
  ['no token', `{${rest}}`, null, null],
  ['no body', '', null, null],
  [
    'a token in a tag before the real one',
    `{"tag":{"storageToken":"${tokenOf(OTHER)}"},"storageToken":"${token}"}`,
    null,
    other,
  ],
  ['a token in a text', `{"url":${JSON.stringify(`"storageToken":"${token}"`)}}`, null, null],
  ['a token in what is no JSON', `"storageToken":"${token}"`, null, own],
]

t.test('the partition is that of the first token a body spells as the SDK does, or of the cookie', async (t) => {
  for (const [name, body, cookie, partition] of ROWS)
    t.equal(partitionNamedBy(Buffer.from(body), cookie, PARTITIONS), partition, name)
  t.not(own, other)
})

const parsers = openParsers()
const caller = { workspace: { id: 'ws_1' }, env: 'live' } as unknown as Caller

/** What the bytes of a body show, and what is true of the parsed one. */
function seen(body: IdentifyBody, headers: Readonly<Record<string, string>>, text = JSON.stringify(body)) {
  const header = (name: string) => headers[name] ?? ''
  const hardware = hardwareKey(body, headers, header('user-agent'), parsers)
  return {
    seeming: partitionSeemingIn(Buffer.from(text), caller, header, parsers, PARTITIONS),
    real: hardwarePartition('ws_1', 'live', hardware, PARTITIONS),
  }
}

t.test('the partition of hardware that the bytes show is that of the parsed body as the SDK writes it', async (t) => {
  const partitions = new Set<number>()
  for (let n = 1; n <= 400; n++) {
    const { body, userAgent } = makeDevice(n)
    const { seeming, real } = seen(body as IdentifyBody, { 'user-agent': userAgent })
    t.equal(seeming, real, `device ${n}`)
    partitions.add(real)
  }
  t.ok(partitions.size > 50, `${partitions.size} partitions`)
})

t.test('phones whose key has screen and language are seen, and hints of the model in headers', async (t) => {
  const iphone =
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Mobile/15E148 Safari/604.1'
  const components = {
    screenResolution: { value: [1179, 2556], ms: 3 },
    languages: { value: [['de-DE'], ['en']], ms: 1 },
    webGlBasics: { value: { renderer: 'Apple GPU' }, ms: 9 },
  }
  for (const userAgent of [iphone, '']) {
    const all = { ...components, userAgent: { value: iphone, ms: 0 } }
    const { seeming, real } = seen({ components: all }, { 'user-agent': userAgent })
    t.equal(seeming, real, userAgent)
  }
  const android = 'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/147.0.0.0 Mobile Safari/537.36'
  const hinted = seen({ components }, { 'user-agent': android, 'sec-ch-ua-model': '"Pixel 9"' })
  t.equal(hinted.seeming, hinted.real)
  t.not(hinted.real, seen({ components }, { 'user-agent': android }).real)
})

t.test(
  'of a body in another spelling, of an app or cut off, the bytes show nothing or something else, and no more',
  async (t) => {
    const { body, userAgent } = makeDevice(7)
    const text = JSON.stringify(body)
    const headers = { 'user-agent': userAgent }
    const spellings = [
      text.slice(0, text.indexOf('"webGlBasics"') + 60),
      JSON.stringify(body, null, 1),
      text.replace('Direct3D11', 'Direct3D}11'),
      '',
      '{}',
      '"webGlBasics":{"value":',
      '"webGlBasics":{"value":{}',
      `{"native":{"platform":"ios"},${text.slice(1)}`,
    ]
    for (const spelling of spellings) {
      const { seeming } = seen(body as IdentifyBody, headers, spelling)
      t.ok(seeming === null || (seeming >= 0 && seeming < PARTITIONS), spelling.slice(0, 40))
    }
    t.equal(seen(body as IdentifyBody, headers, spellings.at(-1)).seeming, null, 'an app')
  },
)
