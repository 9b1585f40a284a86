// Storage tokens: what is signed comes back, and nothing else does.

import { createHmac } from 'node:crypto'
import t from 'tap'
import type { Env } from '../../src/domain/event.ts'
import { signToken, verifyToken } from '../../src/identity/token.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const SECRET = 'a-secret-of-a-workspace-0123456789'
const CLAIMS = { visitorId: 'pv_abcdefghijABCDEFGHIJ', generation: 7, issuedAt: Date.UTC(2026, 10, 20, 12, 0, 0, 123) }
const TOKEN = signToken(SECRET, 'ws_1', 'live', CLAIMS)

t.test('a token gives back its claims', async (t) => {
  t.match(TOKEN, /^st_[\w-]{64}$/)
  t.same(verifyToken(SECRET, 'ws_1', 'live', TOKEN), CLAIMS)
  const latest = { visitorId: 'pv_00000000000000000000', generation: 2 ** 32 - 1, issuedAt: 2 ** 47 }
  t.same(verifyToken(SECRET, 'ws_1', 'live', signToken(SECRET, 'ws_1', 'live', latest)), latest)
  t.throws(() => signToken(SECRET, 'ws_1', 'live', { ...CLAIMS, visitorId: 'pv_short' }))
})

t.test('a token of another workspace, environment or secret is void', async (t) => {
  t.equal(verifyToken(SECRET, 'ws_2', 'live', TOKEN), null)
  t.equal(verifyToken(SECRET, 'ws_1', 'test', TOKEN), null)
  t.equal(verifyToken(`${SECRET}x`, 'ws_1', 'live', TOKEN), null)
  t.equal(verifyToken(SECRET, 'ws_1\0live', 'live', TOKEN), null)
})

t.test('every changed bit of every byte voids it', async (t) => {
  const bytes = Buffer.from(TOKEN.slice(3), 'base64url')
  for (let i = 0; i < bytes.length; i++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(bytes)
      changed[i] = (changed[i] as number) ^ (1 << bit)
      if (verifyToken(SECRET, 'ws_1', 'live', `st_${changed.toString('base64url')}`) !== null)
        t.fail(`byte ${i} bit ${bit}`)
    }
  }
  t.equal(bytes.length, 48)
})

t.test('every changed, dropped, added or re-spelled character voids it', async (t) => {
  const others = 'Aa0-_+/=. \nž'
  for (let i = 0; i < TOKEN.length; i++) {
    for (const other of others) {
      if (other === TOKEN[i]) continue
      const changed = TOKEN.slice(0, i) + other + TOKEN.slice(i + 1)
      if (verifyToken(SECRET, 'ws_1', 'live', changed) !== null) t.fail(`${i} ${other}`)
      if (verifyToken(SECRET, 'ws_1', 'live', TOKEN.slice(0, i) + other + TOKEN.slice(i)) !== null)
        t.fail(`${i} +${other}`)
    }
    if (verifyToken(SECRET, 'ws_1', 'live', TOKEN.slice(0, i) + TOKEN.slice(i + 1)) !== null) t.fail(`${i} dropped`)
  }
  t.equal(verifyToken(SECRET, 'ws_1', 'live', TOKEN.replaceAll('-', '+').replaceAll('_', '/')), null)
})

t.test('no random text is a token', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  for (let i = 0; i < 500; i++) {
    const text = `st_${Buffer.from(random.bytes(random.pick([0, 1, 47, 48, 49, 300]))).toString('base64url')}`
    if (verifyToken(SECRET, 'ws_1', 'live', text) !== null) t.fail(text)
  }
  t.equal(verifyToken(SECRET, 'ws_1', 'live', ''), null)
})

t.test('tokens are signed with HMAC-SHA-256 by workspace and environment, whose turn it ever is', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const secrets = [SECRET, 'ž'.repeat(31), 'x'.repeat(64), 'x'.repeat(65), 'a longer one than a block '.repeat(9)]
  // Two workspaces with one secret, as after a copy, must not take each other's place.
  const workspaces = ['ws_default', 'ws_1', 'ws_ž']
  for (let i = 0; i < 500; i++) {
    const secret = random.chance(0.8) ? random.pick(secrets) : `secret ${i}`
    const [workspace, env] = [random.pick(workspaces), random.pick<Env>(['live', 'test'])]
    const claims = { ...CLAIMS, generation: random.int(2 ** 32), issuedAt: random.int(2 ** 47) }
    const token = signToken(secret, workspace, env, claims)
    const bytes = Buffer.from(token.slice(3), 'base64url')
    const digest = createHmac('sha256', secret).update(`${workspace}\0${env}\0`).update(bytes.subarray(0, 32)).digest()
    if (!digest.subarray(0, 16).equals(bytes.subarray(32))) t.fail(`signed otherwise: ${secret} ${workspace} ${env}`)
    t.same(verifyToken(secret, workspace, env, token), claims)
    if (verifyToken(secret, workspace, env === 'live' ? 'test' : 'live', token) !== null) t.fail('elsewhere')
  }
})

t.test('with more secrets than are kept prepared, each still has its own tokens', async (t) => {
  const tokens = Array.from({ length: 5_000 }, (_, i) => signToken(`secret ${i}`, `ws_${i}`, 'live', CLAIMS))
  const wrong = tokens.filter(
    (token, i) =>
      verifyToken(`secret ${i}`, `ws_${i}`, 'live', token) === null ||
      verifyToken(`secret ${i + 1}`, `ws_${i}`, 'live', token) !== null,
  )
  t.same(wrong, [])
})
