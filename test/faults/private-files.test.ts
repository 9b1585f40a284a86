// What a deployment remembers is readable by its user alone, whoever made the folder and whatever was in it.

import { chmodSync, lstatSync, mkdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { browserBody, CHROME, clientOf } from '../helpers/client.ts'
import { entriesOf } from '../helpers/folder.ts'
import { cleanUp, historyOpen, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)

/** What others could read or enter, with its mode. */
function openIn(dir: string): string[] {
  return [dir, ...Array.from(entriesOf(dir), ({ path }) => path)].flatMap((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    // What a link names counts, not the link.
    const mode = found === undefined || found.isSymbolicLink() ? 0 : found.mode
    return (mode & 0o077) === 0 ? [] : [`${relative(dir, path) || '.'} ${(mode & 0o777).toString(8)}`]
  })
}

t.test(
  'every file and folder is private, also in a folder that was there before, and in one that was open',
  async (t) => {
    const dataDir = join(temporaryFolder(), 'data')
    mkdirSync(dataDir)
    chmodSync(dataDir, 0o755)
    const first = await startServer({ dataDir })
    await historyOpen(first)
    const { status } = await clientOf(first).identify({ ...browserBody('A GPU'), userAgent: CHROME })
    t.equal(status, 200)
    t.same(openIn(dataDir), [])
    t.equal(await first.stop(), 0)
    t.same(openIn(dataDir), [])

    // As builds before left it.
    for (const name of ['.', 'kv', 'kv/data.mdb', 'log', 'clickhouse', 'format.json']) {
      const path = join(dataDir, name)
      chmodSync(path, lstatSync(path).isDirectory() ? 0o755 : 0o644)
    }
    const second = await startServer({ dataDir, keys: first.keys })
    t.same(openIn(dataDir), [])
    t.equal(await second.stop(), 0)
  },
)
