// A restore that was cut short, at its first write or later: start, rebuild and restore all say the same way out of it.

import t from 'tap'
import { prepareDeployment } from '../../src/control/bootstrap.ts'
import { sealManifest } from '../../src/ops/backup-format.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { restore } from '../../src/ops/restore.ts'
import { openOps, PARTITIONS, quiet } from '../helpers/deployment.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const NOTHING = { stateAt: 0, eventsTo: 0, decidedTo: 0, rowsBefore: 0 }
const manifest = sealManifest({
  product: 'test',
  deployment: 'test',
  createdAt: '2026-11-20T10:00:00.000Z',
  partitions: Array.from({ length: PARTITIONS }, () => NOTHING),
  files: [],
})
const WAY_OUT = /a restore into this deployment was begun and not finished: .*empty .* run restore again/

t.test('after an interrupted restore start, rebuild and restore tell to empty it and to restore again', async (t) => {
  const ops = await openOps(temporaryFolder())
  t.teardown(() => ops.close())
  const { log, kv, partitions } = ops
  const checkAll = async (when: string) => {
    await t.rejects(prepareDeployment({ log, kv, partitions, sources: [] }), { message: WAY_OUT }, `start, ${when}`)
    await t.rejects(rebuild(ops), { message: WAY_OUT }, `rebuild, ${when}`)
    await t.rejects(restore(ops, '/nowhere', manifest), { message: WAY_OUT }, `restore, ${when}`)
  }
  // Its files are missing, so that it ends as soon as it has begun.
  await t.rejects(restore({ ...ops, progress: quiet }, '/nowhere', manifest))
  await checkAll('before the log holds anything')
  await log.append('changes', 0, [new Uint8Array(3)])
  await checkAll('when the log holds changes')
})
