// Pairs that were labelled by hand, from the API to the measurement: what was merged comes out as one device, what was split as two.

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { measureCorrections, readCorrectionsFile } from '../../bench/identity/corrections.ts'
import type { ExportedCorrection } from '../../src/ops/corrections.ts'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const run = promisify(execFile)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const BENCH = fileURLToPath(new URL('../../bench/run.js', import.meta.url))

function newDevice(gpu: number, fonts: number, ip: string) {
  const device = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce GTX ${gpu} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(device.components, {
    fonts: { value: [`Font ${fonts}`] },
    canvas: { value: { winding: true, geometry: `g${fonts}`, text: `t${fonts}`, stable: true } },
    audio: { value: 700 + fonts },
    screenResolution: { value: [1_000 + 10 * fonts, 800] },
  })
  return { ...device, userAgent: CHROME, ip }
}
interface Visited {
  readonly requestId: string
  readonly visitorId: string
  readonly storageToken: string
}

t.test('pairs are exported with both sides, and measured', async (t) => {
  const dataDir = temporaryFolder()
  const server = await startServer({ dataDir })
  const client = clientOf(server)
  const visit = async (device: object, storageToken: string | null = null): Promise<Visited> => {
    const { status, body } = await client.identify({ ...device, storageToken })
    t.equal(status, 200)
    return body
  }
  const stored = (id: string, visits: number) =>
    eventually(
      () => client.get(`/v1/visitors/${id}`),
      ({ body }) => body?.totalVisits === visits,
    )
  // One device that cleared its storage and changed its screen and address, so that it was not known again.
  const moving = newDevice(10, 1, '198.51.100.1')
  const before = await visit(moving)
  const altered = newDevice(10, 1, '203.0.113.9')
  Object.assign(altered.components, { screenResolution: { value: [2_560, 1_440] }, canvas: { value: null } })
  const after = await visit(altered)
  // Another one, and one that goes about with its token.
  const robbed = await visit(newDevice(20, 2, '198.51.101.1'))
  const robber = await visit(newDevice(20, 3, '203.0.114.9'), robbed.storageToken)
  t.not(before.visitorId, after.visitorId)
  t.equal(robber.visitorId, robbed.visitorId)
  await Promise.all([stored(before.visitorId, 1), stored(after.visitorId, 1), stored(robbed.visitorId, 2)])
  const send = (path: string, body: object) => client.send('POST', `/v1/visitors/${path}`, { body })
  t.equal((await send(`${before.visitorId}/merge`, { visitorId: after.visitorId })).status, 200)
  const split = await send(`${robbed.visitorId}/split`, { requestIds: [robber.requestId] })
  t.equal(split.status, 201)
  t.equal(await server.stop(), 0)

  const env = { ...process.env, FINGERPOST_DATA_DIR: dataDir }
  const { stdout } = await run(process.execPath, [MAIN, 'corrections', 'export'], { env })
  const file = join(temporaryFolder(), 'corrections.ndjson')
  writeFileSync(file, stdout)
  const pairs: ExportedCorrection[] = readCorrectionsFile(file)
  t.match(pairs, [
    { same: true, env: 'live', visitors: [before.visitorId, after.visitorId] },
    { same: false, env: 'live', visitors: [robbed.visitorId, split.body.visitorId] },
  ])
  for (const { visitors, sides } of pairs) {
    t.same(
      sides.map((side) => side?.id),
      visitors,
    )
    for (const side of sides) t.ok(side?.profile, 'what it is compared by')
  }
  t.notMatch(stdout, /198\.51|203\.0/, 'no address')

  const result = measureCorrections(pairs)
  t.match(result, { pairs: 2, unknown: 0, same: { n: 1 }, different: { n: 1, linked: 0 } })
  const sameAgain = measureCorrections([{ ...(pairs[0] as ExportedCorrection), sides: [copyOf(pairs), copyOf(pairs)] }])
  t.match(sameAgain, { same: { n: 1, linked: 1 }, precision: { right: 1, n: 1 }, recall: { share: 1 } })
  t.match(measureCorrections([{ ...(pairs[1] as ExportedCorrection), sides: [null, copyOf(pairs)] }]), { unknown: 1 })

  const bench = await run(process.execPath, [BENCH, 'identity', '--corrections', file, '--json'])
  t.same(JSON.parse(bench.stdout), JSON.parse(JSON.stringify(result)), 'the bench says the same')
})

/** Somebody who visited once and comes again unchanged. */
function copyOf([pair]: readonly ExportedCorrection[]) {
  return pair?.sides[0] ?? null
}
