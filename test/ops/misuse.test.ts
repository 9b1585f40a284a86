// Command lines that ask for what cannot be: they end with 2 and one line, before anything is opened.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runProgram } from '../helpers/child.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))

for (const [args, expected] of [
  [['seed', '--events', 'abc'], /--events takes a whole number from 1/],
  [['seed', '--events', '0'], /--events takes a whole number from 1/],
  [['seed', '--days', '0'], /--days takes a whole number from 1 to 90/],
  [['seed', '--days', '9999'], /--days takes a whole number from 1 to 90/],
  [['seed', '--until', '2100-01-01T00:00:00Z'], /--until lies in the future/],
  [['seed', '--until', '2001-01-01T00:00:00Z'], /--until lies so far back/],
  [['start', '--role', 'bogus'], /--role takes ingress, .* not bogus/],
  [['start', '--role', 'api,'], /--role takes ingress/],
] as const) {
  t.test(`${args.join(' ')} is refused with 2 and makes no data folder`, async (t) => {
    const dataDir = join(temporaryFolder(), 'data')
    const { code, said } = await runProgram(process.execPath, [MAIN, ...args], { FINGERPOST_DATA_DIR: dataDir })
    t.equal(code, 2)
    t.match(said, expected)
    t.match(said, /^fingerpost: [^\n]+\n$/, 'one line, no stack')
    t.notOk(existsSync(dataDir))
  })
}

t.test('roles that there are but not here are a matter of settings, and end with 1', async (t) => {
  const env = { FINGERPOST_DATA_DIR: join(temporaryFolder(), 'data') }
  const { code, said } = await runProgram(process.execPath, [MAIN, 'start', '--role', 'api'], env)
  t.equal(code, 1)
  t.match(said, /roles run apart only in a cluster/)
})
