// Apps on phones against a real server: the `native` block, what it raises, and being recognised by the id an app sends.

import t from 'tap'
import { eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, send } = await openTenant()
const key = server.keys.testSecret

const PHONE = {
  platform: 'android',
  manufacturer: 'Google',
  model: 'Pixel 9',
  osVersion: '16',
  osBuild: 'BP2A.250605.031',
  appId: 'example.shop',
  appVersion: '4.2.0',
  appSignature: 'A4:0D:A8:0A:59:D1:70:CA:A9:50:CF:15:C1:8C:45:4D:47:A3:9B:26:98:9D:8B:64:0E:CD:74:5B:A7:1B:F5:DC',
  rooted: false,
  emulator: false,
  cloned: false,
  hooked: false,
}

async function visit(native: object, more: object = {}, as = key) {
  const { status, body } = await identify(
    { sdk: { name: 'android', version: '1.0.0' }, native: { ...PHONE, ...native }, ...more },
    { key: as },
  )
  t.equal(status, 200)
  return body
}

const claim = (native: object, more: object = {}) => visit(native, more, server.keys.testPublic)

t.test('the block of a native SDK makes the device and its signals', async (t) => {
  const event = await visit({
    installId: '5a3c9d1e-7b2f-4e8a-9c6d-0f1e2d3c4b5a',
    rooted: true,
    cloned: true,
    evidence: { rooted: ['su_binary', 'magisk'], cloned: ['user_id_10'] },
  })
  t.match(event.device, { platform: 'Android', osVersion: '16', model: 'Pixel 9', appVersion: '4.2.0', type: 'mobile' })
  t.match(event.signals, { rootedDevice: true, clonedApp: true, emulator: false, tampered: false })
  t.match(event.signalDetails.rootedDevice, {
    state: 'detected',
    source: 'native',
    methods: ['native', 'native:su_binary', 'native:magisk'],
  })
  t.notMatch(JSON.stringify(event), /5a3c9d1e|A4:0D/, 'ids and signatures are not shown')
})

t.test('a rule against bots lets an app in that speaks through its HTTP library', async (t) => {
  const conditions = { operator: 'AND', rules: [{ field: 'signals.bot.detected', operator: 'equals', value: true }] }
  const rule = { name: 'No bots', status: 'live', action: { verdict: 'block' }, conditions }
  const { status, body } = await send('POST', '/v1/rules', { key, body: rule })
  t.equal(status, 201)
  const components = { screenResolution: { value: [1080, 2424] }, timezone: { value: 'Europe/Prague' } }
  const sent = { sdk: { name: 'android', version: '1.0.0' }, native: PHONE, components }
  for (const library of ['okhttp/5.0', 'ktor-client', 'curl/8.5.0']) {
    const call = { key: server.keys.testPublic, headers: { 'User-Agent': library } }
    const { body: result } = await identify(sent, call)
    const { body: event } = await get(`/v1/events/${result.requestId}`, key)
    t.match(event, { verdict: 'allow', matchedRule: null, signals: { bot: { detected: false } } }, library)
    t.match(event.signalDetails.bot, { state: 'undetermined', methods: [] }, library)
    t.equal(
      (await get(`/v1/events/${(await identify({ components }, call)).body.requestId}`, key)).body.verdict,
      'block',
    )
  }
  t.equal((await send('DELETE', `/v1/rules/${body.id}`, { key })).status, 200)
})

t.test('an id leads an app back to its visitor, wherever it is and without a token', async (t) => {
  const vendorId = 'f3a1c95be77d0264'
  const first = await visit({ vendorId, installId: 'first-installation-01' }, { mock: { ip: '198.51.100.1' } })
  t.equal(first.visitorFound, false)
  const again = await visit(
    { vendorId: vendorId.toUpperCase(), installId: 'second-installation-02', osVersion: '17', appVersion: '5.0.0' },
    { mock: { ip: '2001:db8:77::1' } },
  )
  t.match(again, { visitorId: first.visitorId, visitorFound: true, identity: { method: 'exact' } })
  t.ok(again.confidence > 0.9)
  const explained = await get(`/v1/events/${again.requestId}/identity`, key)
  t.match(explained.body, { method: 'exact', comparedWith: first.visitorId, agreement: { model: 'agrees' } })
  const other = await visit({ vendorId: 'f3a1c95be77d0265' })
  t.not(other.visitorId, first.visitorId, 'another id is another device, however alike')
})

t.test('the same id on other hardware names nobody, and says that the app was cloned', async (t) => {
  const installId = 'copied-installation-99'
  const first = await visit({ installId })
  const copy = await visit({ installId, model: 'SM-S931B', manufacturer: 'samsung' })
  t.not(copy.visitorId, first.visitorId)
  t.match(copy, { visitorFound: false, signals: { clonedApp: true } })
  t.match(copy.signalDetails.clonedApp.methods, ['native_id_elsewhere'])
  t.equal((await visit({ installId })).visitorId, first.visitorId, 'the first one keeps its id')
})

t.test('an id leads back only where system and model are told and equal', async (t) => {
  const ids = { vendorId: 'b2c19f0e55d1a764' }
  const owner = await claim(ids)
  for (const other of [{ model: undefined }, { model: '' }, { model: 'Pixel 9 Pro' }, { platform: 'ios' }]) {
    const { visitorId, visitorFound } = await claim({ ...ids, ...other })
    t.not(visitorId, owner.visitorId, JSON.stringify(other))
    t.equal(visitorFound, false)
  }
  t.equal((await claim(ids)).visitorId, owner.visitorId)
  const nameless = await claim({ vendorId: 'c3d20a1f66e2b875', model: undefined })
  t.not((await claim({ vendorId: 'c3d20a1f66e2b875' })).visitorId, nameless.visitorId, 'what was absent is different')
  const silent = await visit({ ...ids, model: undefined })
  t.equal(silent.signals.clonedApp, false, 'a model that is not told is no other model')
})

t.test('the id of a vendor and that of an installation are never each other', async (t) => {
  const text = 'd4e31b2077f3c986'
  const owner = await claim({ vendorId: text })
  t.not((await claim({ installId: text })).visitorId, owner.visitorId)
  t.equal((await claim({ vendorId: text })).visitorId, owner.visitorId)
})

t.test('an id that a public key sends is a guess, and so is the token given out for it', async (t) => {
  const ids = { vendorId: 'e5f42c3188a4da97' }
  const owner = await claim(ids)
  const guessed = await claim(ids)
  t.equal(guessed.visitorId, owner.visitorId)
  t.ok(guessed.confidence <= 0.9, `${guessed.confidence}`)
  const withToken = await claim(ids, { storageToken: guessed.storageToken })
  t.equal(withToken.visitorId, owner.visitorId)
  t.ok(withToken.confidence < 0.95, `${withToken.confidence}`)
  t.equal(
    (await claim(ids, { storageToken: owner.storageToken })).confidence,
    0.995,
    'the first one is as sure as ever',
  )
  const vouched = await visit(ids)
  t.equal(vouched.visitorId, owner.visitorId)
  t.ok(vouched.confidence > 0.9, 'a server vouches for it')
})

t.test('ids that many devices send lead nowhere', async (t) => {
  for (const vendorId of ['00000000-0000-0000-0000-000000000000', '9774d56d682e549c', '0000000000000000']) {
    const one = await visit({ vendorId }, { mock: { ip: '198.51.100.20' } })
    const other = await visit({ vendorId, model: 'Pixel 8' }, { mock: { ip: '203.0.113.77' } })
    t.not(one.visitorId, other.visitorId, vendorId)
    t.equal(other.signals.clonedApp, false)
  }
})

t.test('an erased visitor is not found by its id', async (t) => {
  const installId = 'to-be-erased-0123456'
  const first = await visit({ installId })
  await eventually(
    () => get(`/v1/visitors/${first.visitorId}`, key),
    ({ status }) => status === 200,
  )
  t.equal((await send('DELETE', `/v1/visitors/${first.visitorId}`, { key })).status, 200)
  const again = await visit({ installId })
  t.not(again.visitorId, first.visitorId)
  t.equal(again.visitorFound, false)
  t.equal((await visit({ installId })).visitorId, again.visitorId)
})
