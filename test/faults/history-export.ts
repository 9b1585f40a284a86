// Pairs that were labelled by hand, from the API to the measurement: what was merged comes out as one device, what was split as two.

import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { measureCorrections, readCorrectionsFile } from '../../bench/identity/corrections.ts'
import type { ExportedCorrection } from '../../src/ops/corrections.ts'
import { PARTITIONS } from '../helpers/deployment.ts'
import { temporaryFolder } from '../helpers/server.ts'
import type { History } from './history.ts'

const run = promisify(execFile)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const BENCH = fileURLToPath(new URL('../../bench/run.js', import.meta.url))

export async function checkExport(t: Test, { folder, merged, split }: History): Promise<void> {
  const env = { ...process.env, FINGERPOST_DATA_DIR: folder, FINGERPOST_DATA_PARTITIONS: String(PARTITIONS) }
  const { stdout } = await run(process.execPath, [MAIN, 'corrections', 'export'], { env })
  const file = join(temporaryFolder(), 'corrections.ndjson')
  writeFileSync(file, stdout)
  const pairs: ExportedCorrection[] = readCorrectionsFile(file)
  const byFirst = (a: ExportedCorrection, b: ExportedCorrection) => (a.visitors.join() < b.visitors.join() ? -1 : 1)
  const wanted = [
    ...merged.map(({ survivor, alias }) => ({ same: true, env: 'live', visitors: [survivor, alias] })),
    ...split.map(({ owner, to }) => ({ same: false, env: 'live', visitors: [owner.event.visitorId, to] })),
  ] as unknown as ExportedCorrection[]
  t.match([...pairs].sort(byFirst), wanted.sort(byFirst))
  for (const { visitors, sides } of pairs) {
    t.same(
      sides.map((side) => side?.id),
      visitors,
    )
    for (const side of sides) t.ok(side?.profile, 'what it is compared by')
  }
  t.notMatch(stdout, /198\.51|203\.0/, 'no address')

  const result = measureCorrections(pairs)
  t.match(result, { pairs: 4, unknown: 0, same: { n: 2 }, different: { n: 2, linked: 0 } })
  const one = (same: boolean) => pairs.find((pair) => pair.same === same) as ExportedCorrection
  // Somebody who visited once and comes again unchanged.
  const [copy = null] = one(false).sides
  const sameAgain = measureCorrections([{ ...one(true), sides: [copy, copy] }])
  t.match(sameAgain, { same: { n: 1, linked: 1 }, precision: { right: 1, n: 1 }, recall: { share: 1 } })
  t.match(measureCorrections([{ ...one(false), sides: [null, copy] }]), { unknown: 1 })

  const bench = await run(process.execPath, [BENCH, 'identity', '--corrections', file, '--json'])
  t.same(JSON.parse(bench.stdout), JSON.parse(JSON.stringify(result)), 'the bench says the same')
}
