// A guess that people took back: neither the record it was made for nor the new visitor carries its doubt on.

import t from 'tap'
import { deviceOf } from '../../src/identity/attributes.ts'
import { tokenChance } from '../../src/identity/generations.ts'
import { ACCOUNTS_EXACT_MAX, countAccounts } from '../../src/identity/linked-accounts.ts'
import { type PartedEvent, visitorOfEvents, withoutVisits } from '../../src/identity/parting.ts'
import { newVisitor, recordVisit } from '../../src/identity/visitor.ts'
import { attributesOf, windowsPc } from '../helpers/recognition.ts'

const [OWN, NEW] = ['pv_abcdefghijABCDEFGHIJ', 'pv_bcdefghijABCDEFGHIJK']
const T0 = Date.UTC(2026, 0, 1)
const HOUR = 3_600_000

t.test('tokens on both sides of a split are certain, whatever the link between them was told with', async (t) => {
  const attributes = attributesOf(windowsPc())
  const device = deviceOf(attributes, windowsPc().body)
  const visit = { ip: '203.0.113.7', attributes, device, token: null, linkedId: null }
  const state = newVisitor(OWN, T0)
  recordVisit(state, { ...visit, atMs: T0, method: 'new', generation: 1, confidence: 0.99 })
  recordVisit(state, { ...visit, atMs: T0 + HOUR, method: 'linked', generation: 2, confidence: 0.85 })
  const guessed = { visitorId: OWN, generation: 2, issuedAt: T0 + HOUR }
  t.equal(tokenChance(state, guessed, T0 + HOUR, HOUR), 0.85)

  const event = {
    requestId: 'req',
    timestamp: T0 + HOUR,
    verdict: 'allow',
    linkedId: null,
    device,
    ip: { address: '203.0.113.7' },
    identity: { method: 'linked', generation: 2 },
  } as unknown as PartedEvent
  const moved = visitorOfEvents(NEW, [event])
  t.equal(tokenChance(moved, { ...guessed, visitorId: NEW }, T0 + 2 * HOUR, HOUR), 1)

  const rest = { firstSeenAt: T0, lastSeenAt: T0, lastVerdict: null, generation: 1 }
  const gone = { accounts: [], ips: [], networks: [], devices: [] }
  const left = withoutVisits(state, {
    visits: 1,
    firstAt: T0 + HOUR,
    lastAt: T0 + HOUR,
    moved,
    parting: { totalVisits: 2, state: '', rest, gone },
  })
  t.equal(left.generation, 1)
  t.equal(tokenChance(left, { visitorId: OWN, generation: 1, issuedAt: T0 }, T0 + 2 * HOUR, HOUR), 1)
})

t.test(
  'accounts only the moved visits had leave a record that counts exactly, and none leaves an estimate',
  async (t) => {
    const attributes = attributesOf(windowsPc())
    const device = deviceOf(attributes, windowsPc().body)
    const visit = {
      ip: '203.0.113.7',
      attributes,
      device,
      token: null,
      method: 'new',
      generation: 1,
      confidence: 1,
    } as const
    for (const accounts of [5, ACCOUNTS_EXACT_MAX, 20 * ACCOUNTS_EXACT_MAX]) {
      const state = newVisitor(OWN, T0)
      for (let i = 0; i < accounts; i++) recordVisit(state, { ...visit, atMs: T0 + i, linkedId: `account ${i}` })
      const before = countAccounts(state.accounts)
      const moving = state.accounts.hashes.slice(0, 4)
      const left = withoutVisits(state, {
        visits: 4,
        firstAt: T0,
        lastAt: T0 + 3,
        moved: newVisitor(NEW, T0),
        parting: {
          totalVisits: accounts,
          state: '',
          rest: { firstSeenAt: T0, lastSeenAt: T0 + accounts, lastVerdict: null, generation: 1 },
          gone: { accounts: moving, ips: [], networks: [], devices: [] },
        },
      })
      t.equal(
        countAccounts(left.accounts),
        accounts <= ACCOUNTS_EXACT_MAX ? accounts - 4 : before,
        `${accounts} accounts`,
      )
    }
  },
)
