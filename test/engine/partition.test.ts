// A partition's batch: what is asked for, and that nothing is decided without it.

import t from 'tap'
import type { TokenClaims } from '../../src/domain/identify.ts'
import { makeRequestId, makeVisitorId } from '../../src/domain/ids.ts'
import { createPartition } from '../../src/engine/partition.ts'
import { decodeEventsRecord, rowAt } from '../../src/events/record.ts'
import { fromRow } from '../../src/events/row.ts'
import { linkedAccountsOf } from '../../src/identity/visitor.ts'
import { unpackVisitor } from '../../src/identity/visitor-record.ts'
import { NO_FACTS } from '../../src/ipintel/addresses.ts'
import { must } from '../../src/lib/must.ts'
import { encodeIdentification } from '../../src/records/identification.ts'
import { unpackHeldVisitor } from '../../src/records/visitors.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { absent, answered } from '../helpers/asking.ts'
import { WORKSPACE } from '../helpers/facts.ts'
import { openWorld, T0 } from '../helpers/partition-world.ts'
import { rng } from '../helpers/rng.ts'

const AT = Date.UTC(2026, 4, 1)

type PartitionOptions = Parameters<typeof createPartition>[0]

/** The only partition there is, under a ruleset without rules. */
function openPartition(given: Pick<PartitionOptions, 'random' | 'visitorsMax' | 'locate'>) {
  const ruleset = openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: 'test', revision: 1, rules: [] }))
  return createPartition({ partition: 0, partitions: 1, monotonic: () => 0, ruleset: () => ruleset, ...given })
}

t.test('what leaves memory while a batch waits is asked for again', async (t) => {
  const { bytes: random } = rng(7)
  const partition = openPartition({ random, visitorsMax: 0 })
  const ids = [makeVisitorId(random), makeVisitorId(random)] as const
  const frames = ids.map((visitorId, i) => ({
    seq: i + 1,
    bytes: encodeIdentification(
      {
        requestId: makeRequestId(AT, random),
        acceptedAt: AT,
        workspace: 'ws_a',
        env: 'test',
        keyKind: 'public',
        ip: '203.0.113.7',
        headers: {},
        tokenForged: false,
        replyTo: 'x',
        token: { visitorId, generation: 1, issuedAt: AT - 1_000 },
      },
      Buffer.from('{"components":{}}'),
    ),
  }))
  const isSecond = ({ kind, id }: { kind: string; id: string }) => kind === 'visitor' && id.endsWith(ids[1])

  const asking = partition.decide(frames, new Set())
  let turn = asking.next([])
  const wanted = () => (turn.done ? [] : turn.value)
  t.ok(wanted().some(isSecond))
  const second = wanted().filter(isSecond)
  while (wanted().some((one) => !isSecond(one))) turn = asking.next(absent(wanted().filter((one) => !isSecond(one))))
  t.same(wanted(), second, 'all of the first is there')

  partition.checkpoint()
  turn = asking.next(absent(second))
  t.ok(
    wanted().some(({ kind, id }) => kind === 'visitor' && id.endsWith(ids[0])),
    'and gone with the checkpoint',
  )
  while (!turn.done) turn = asking.next(absent(turn.value))
  const { replies, dead } = turn.value
  t.equal(dead.length, 0)
  t.same(
    replies.map(({ body }) => JSON.parse(body).visitorId),
    ids,
  )
})

t.test(
  'an identification that cannot be read, or cost a thread, becomes an event that says so, and the next one is decided',
  async (t) => {
    const { bytes: random } = rng(9)
    const asked: string[] = []
    const partition = openPartition({
      random,
      visitorsMax: 100,
      locate(ip) {
        asked.push(ip)
        if (ip === '203.0.113.1') throw new Error('no table has this')
        return NO_FACTS
      },
    })
    const frameOf = (seq: number) => {
      const meta = { requestId: makeRequestId(AT, random), acceptedAt: AT, workspace: 'ws_a', env: 'test' } as const
      const from = { keyKind: 'public', headers: {}, tokenForged: false, token: null, replyTo: 'x' } as const
      const bytes = encodeIdentification({ ...meta, ...from, ip: `203.0.113.${seq}` }, Buffer.from('{"components":{}}'))
      return { seq, bytes }
    }
    const frames = [1, 2, 3, 4].map(frameOf)
    frames.splice(3, 1, { seq: 4, bytes: Buffer.from('no record') })
    const { replies, dead } = answered(partition.decide(frames, new Set([2])), absent)
    t.same(
      dead.map(({ seq, reason }) => [seq, reason]),
      [
        [1, 'evaluation_failed: Error: no table has this'],
        [2, 'repeated_failure: given up on'],
        [4, 'unreadable'],
      ],
    )
    t.notOk(asked.includes('203.0.113.2'), 'what is given up on is not read once more')
    t.equal(replies.length, 3, 'all that are identifications are answered')
  },
)

const LOOK = {
  screenResolution: { value: [1080, 2424] },
  timezone: { value: 'Europe/Prague' },
  languages: { value: [['cs-CZ']] },
  hardwareConcurrency: { value: 8 },
  deviceMemory: { value: 8 },
  fonts: { value: ['Roboto', 'Noto'] },
  audio: { value: 124.04347527516074 },
  webGlBasics: { value: { vendorUnmasked: 'ARM', rendererUnmasked: 'Mali-G715' } },
}

/** A partition that keeps everything in memory, for one visit at a time. */
function openVisits(seed: number) {
  const { bytes: random } = rng(seed)
  const partition = openPartition({ random, visitorsMax: 100 })
  let seq = 0
  function visit(atMs: number, ip: string, body: object, token: TokenClaims | null = null) {
    const meta = { requestId: makeRequestId(atMs, random), acceptedAt: atMs, workspace: 'ws_a', env: 'test' } as const
    const from = { keyKind: 'public', ip, headers: {}, tokenForged: false, token, replyTo: 'x' } as const
    const bytes = encodeIdentification({ ...meta, ...from }, Buffer.from(JSON.stringify(body)))
    const { records } = answered(partition.decide([{ seq: ++seq, bytes }], new Set()), absent)
    const record = decodeEventsRecord(must(records[0]))
    const event = fromRow(rowAt(record, 0))
    const { visitorId, visitorFound, confidence, signals, identity, scoreReasons } = event
    const isCloned = signals.clonedApp.state === 'detected'
    const next: TokenClaims = { visitorId, generation: identity.generation, issuedAt: atMs }
    const teaches = record.items[0]?.lesson !== undefined
    return { visitorId, visitorFound, confidence, identity, scoreReasons, isCloned, teaches, token: next }
  }
  return { visit, random }
}

t.test('the id of an app does not come to lead to a visitor that it was only linked to by looks', async (t) => {
  const { visit } = openVisits(11)
  let hours = 0
  const fromApp = (ip: string, native: object, components: object) =>
    visit(AT + ++hours * 3_600_000, ip, { native: { platform: 'android', model: 'Pixel 9', ...native }, components })
  const owner = fromApp('203.0.113.7', {}, LOOK)
  const vendorId = 'a7b64e53aac6fcb9'
  const near = fromApp('203.0.113.7', { vendorId }, LOOK)
  t.equal(near.visitorId, owner.visitorId, 'linked by its looks')
  const far = fromApp('198.51.100.7', { vendorId }, {})
  t.not(far.visitorId, owner.visitorId)
  t.equal(fromApp('192.0.2.7', { vendorId }, {}).visitorId, far.visitorId, 'it leads to whom it came with first')
})

t.test('a genuine token brings back the visitor it names, whoever looks the same', async (t) => {
  const { visit, random } = openVisits(13)
  const other = visit(AT, '203.0.113.7', { components: LOOK })
  const forgotten = makeVisitorId(random)
  const token = { visitorId: forgotten, generation: 1, issuedAt: AT - 1_000 }
  const back = visit(AT + 1_000, '203.0.113.7', { components: LOOK }, token)
  t.not(back.visitorId, other.visitorId)
  t.equal(back.visitorId, forgotten)
})

const DAY_MS = 86_400_000

/** Of a visitor that is not in the state. */
const tokenOf = (random: (bytes: number) => Uint8Array, generation: number): TokenClaims => ({
  visitorId: makeVisitorId(random),
  generation,
  issuedAt: AT - DAY_MS,
})

t.test('a visitor that its token brings back is told with the certainty of a token, and teaches nothing', async (t) => {
  const { visit, random } = openVisits(17)
  t.equal(visit(AT, '198.51.100.7', { components: LOOK }).teaches, true, 'a newcomer does')
  for (const components of [LOOK, {}]) {
    const token = tokenOf(random, 1)
    const { visitorId } = token
    const back = visit(AT + DAY_MS, '203.0.113.7', { components }, token)
    t.match(back, { visitorId, visitorFound: true, confidence: 0.995, teaches: false })
    t.match(back.identity, { method: 'token', generation: 1, explanation: { evidence: ['token_unknown_visitor'] } })
    t.notMatch(back.scoreReasons, [{ reason: 'low_confidence' }])
  }
})

t.test(
  'a token of a later generation that nobody remembers giving out is no surer than the guess it may come from',
  async (t) => {
    const { visit, random } = openVisits(19)
    const body = { components: LOOK }
    const guessed = tokenOf(random, 2)
    const isAGuess = ({ confidence }: { confidence: number }) => confidence > 0.88 && confidence < 0.9
    const back = visit(AT, '203.0.113.7', body, guessed)
    t.match(back, { visitorId: guessed.visitorId, visitorFound: true, identity: { method: 'token', generation: 2 } })
    t.ok(isAGuess(back), `${back.confidence}`)
    const again = visit(AT + 1_000, '203.0.113.7', body, back.token)
    t.ok(isAGuess(again), `${again.confidence} at the next visit`)
    t.ok(
      visit(AT + 90 * DAY_MS, '203.0.113.7', body, again.token).confidence >= 0.99,
      'until it had time to be refuted',
    )

    const first = tokenOf(random, 1)
    t.equal(visit(AT, '203.0.113.8', body, first).confidence, 0.995)
    const later = visit(AT + 1_000, '203.0.113.8', body, { ...first, generation: 2 })
    t.ok(isAGuess(later), `${later.confidence} of a visitor that the first one brought back`)
  },
)

t.test('the id of an app does not come to lead to a visitor that a guessed token brought back', async (t) => {
  const { visit, random } = openVisits(23)
  const native = { platform: 'android', model: 'Pixel 9', vendorId: 'b7b64e53aac6fcb9' }
  const guessed = tokenOf(random, 2)
  t.equal(visit(AT, '203.0.113.7', { native }, guessed).visitorId, guessed.visitorId)
  t.not(visit(AT + 1_000, '198.51.100.7', { native }).visitorId, guessed.visitorId)
  const sure = tokenOf(random, 1)
  const other = { ...native, vendorId: 'c7b64e53aac6fcb9' }
  visit(AT + 2_000, '203.0.113.7', { native: other }, sure)
  t.equal(visit(AT + 3_000, '198.51.100.7', { native: other }).visitorId, sure.visitorId)
})

t.test('the id of an app on other hardware raises clonedApp, also where its token came along', async (t) => {
  const { visit } = openVisits(29)
  let hours = 0
  const fromApp = (native: object, token: TokenClaims | null = null) =>
    visit(AT + ++hours * 3_600_000, '203.0.113.7', { native: { platform: 'android', ...native } }, token)
  const phone = { vendorId: 'a1b2c3d4e5f60718', model: 'Pixel 8' }
  const first = fromApp(phone)
  t.equal(fromApp({ ...phone, osVersion: '17' }, first.token).isCloned, false, 'the same phone')
  t.equal(
    fromApp({ ...phone, model: undefined }, first.token).isCloned,
    false,
    'a model that is not told is no other model',
  )
  const copy = fromApp({ ...phone, model: 'SM-A556B' }, first.token)
  t.match(copy, { visitorId: first.visitorId, isCloned: true })
  t.equal(fromApp(phone, first.token).isCloned, true, 'and so when the first one is back')

  const other = fromApp({ vendorId: 'b1b2c3d4e5f60718', model: 'Pixel 8' })
  const moved = fromApp({ vendorId: 'c1b2c3d4e5f60718', model: 'SM-A556B' }, other.token)
  t.match(moved, { visitorId: other.visitorId, isCloned: false }, 'a token with another id says nothing of the app')
})

t.test(
  'accounts are counted anew, one is not dropped where the visitor was seen since, and adoption comes to the same',
  async (t) => {
    const world = openWorld()
    const [visitorId] = world.visit({ device: 1, ip: '203.0.113.7', linkedId: 'a' }) as [string]
    world.visit({ device: 1, ip: '203.0.113.7', linkedId: 'b', visitorId })
    const accounts = () => {
      const packed = [...world.stored].find(([name]) => name === `visitor ws_a/live/${visitorId}`)?.[1]
      return linkedAccountsOf(unpackVisitor(unpackHeldVisitor(packed as Uint8Array).state))
    }
    t.equal(accounts(), 2)
    world.recount(visitorId, { add: 'c', drop: 'b', lastSeenAt: T0 + 1_000 })
    t.equal(accounts(), 2, 'one for another')
    world.recount(visitorId, { add: 'd', drop: 'a', lastSeenAt: T0 })
    t.equal(accounts(), 3, 'whoever asked did not know of the latest visit')
    world.recount(visitorId, { add: null, drop: 'a', lastSeenAt: T0 + 1_000 })
    t.equal(accounts(), 2)
    world.recount('pv_00000000000000000000', { add: 'a', drop: null, lastSeenAt: T0 })
    t.same([...world.adopted().stored], [...world.stored])
  },
)
