// Which partition an identification is handed over to before it is parsed: a guess that may be wrong and is never needed.

import t from 'tap'
import { homePartition } from '../../src/domain/ids.ts'
import { signToken } from '../../src/identity/token.ts'
import { partitionNamedBy } from '../../src/ingress/hand-over.ts'

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
