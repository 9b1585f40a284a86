// The memory of nonces against a plain list, over growth, expiry and the way through the checkpoint.

import t from 'tap'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { createNonces, type NonceEntry } from '../../src/engine/nonces.ts'
import { VALUE_BYTES_MAX } from '../../src/kv/kv.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const RUNS = sized({ quick: 2, usual: 6, long: 20 })

t.test('what was added within the window is found, and nothing else, also after a restart', (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  for (let run = 0; run < RUNS; run++) {
    let atMs = 1_700_000_000_000
    let restoredAt = 0
    const monotonic = () => atMs
    let nonces = createNonces(monotonic)
    const added: NonceEntry[] = []
    const chunks: Uint8Array[] = []
    for (let i = 0; i < 1_000; i++) {
      atMs += random.int(random.chance(0.01) ? NONCE_WINDOW_MS : 400)
      const requestId = `req_${String(run * 1_000 + i).padStart(26, '0')}`
      const entry = { nonceHash: random.int(500) + 1, bodyHash: i, acceptedAt: atMs, requestId }
      nonces.add(entry)
      added.push(entry)
      if (random.chance(0.02)) chunks.push(...nonces.takeAdded())
      if (random.chance(0.005)) {
        chunks.push(...nonces.takeAdded())
        nonces = createNonces(monotonic)
        restoredAt = atMs
        for (const chunk of chunks) nonces.restore(chunk)
      }
      const asked = random.int(500) + 1
      const newest = added.findLast((e) => e.nonceHash === asked)
      const expected = newest !== undefined && atMs - newest.acceptedAt <= NONCE_WINDOW_MS ? newest : null
      // Right after a restart an older one may still be known: how old it is by this process's clock, nobody can tell.
      if (expected === null && atMs - restoredAt <= NONCE_WINDOW_MS) continue
      if (JSON.stringify(nonces.find(asked, atMs)) !== JSON.stringify(expected)) {
        return t.same(nonces.find(asked, atMs), expected, `run ${run}, step ${i}`)
      }
    }
  }
  t.pass(`${RUNS} runs of 1,000 nonces`)
  t.end()
})

t.test('a clock that jumps makes nobody forget', (t) => {
  let monotonicMs = 0
  const nonces = createNonces(() => monotonicMs)
  const acceptedAt = 1_700_000_000_000
  nonces.add({ nonceHash: 1, bodyHash: 1, acceptedAt, requestId: 'req_1'.padEnd(30, '0') })
  monotonicMs += 5_000
  const later = acceptedAt + 3_600_000
  nonces.add({ nonceHash: 2, bodyHash: 2, acceptedAt: later, requestId: 'req_2'.padEnd(30, '0') })
  t.ok(nonces.find(1, later), 'forth')
  t.ok(nonces.find(2, acceptedAt), 'and back')
  monotonicMs += NONCE_WINDOW_MS
  t.equal(nonces.find(1, later), null, 'but not for ever')
  t.end()
})

t.test('however many there are, they are packed in chunks that the kv takes', (t) => {
  const COUNT = 40_000
  const nonces = createNonces(() => 0)
  for (let i = 1; i <= COUNT; i++)
    nonces.add({ nonceHash: i, bodyHash: i, acceptedAt: 0, requestId: `req_${i}`.padEnd(30, '0') })
  const chunks = nonces.takeAdded()
  for (const { length } of chunks) t.ok(length < VALUE_BYTES_MAX)
  t.same(nonces.takeAdded(), [])
  const again = createNonces(() => 0)
  for (const chunk of chunks) again.restore(chunk)
  for (const i of [1, 16_000, 16_001, COUNT]) t.equal(again.find(i, 0)?.bodyHash, i)
  t.end()
})
