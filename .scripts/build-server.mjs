// Bundles the server: the command, its threads and its child process, each into a file of its own with what it always loads,
// and with files beside it for what only some commands and clusters load. Hundreds of small modules cost more to open than to run.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Files that name each other by `new URL('./x', import.meta.url)`: all of them lie in one folder. */
const ENTRIES = ['main', 'shards/shard.worker', 'ipintel/load.worker', 'clickhouse/chdb.child']
const ASSETS = ['clickhouse/schema.sql', 'kv/commit.lua', 'kv/walk.lua', 'limits/take.lua']
/** They bring binaries, or start files of their own as threads; ioredis only clusters need, and each bundle would hold it again. */
export const EXTERNAL = /^(chdb|ioredis|lmdb|lz4-napi|msgpackr|pino|piscina|uWebSockets\.js)(\/|$)/

/** Resolves to the files of the folder `dir`, which it does not write. */
export async function bundleServer(dir) {
  const files = new Map(ASSETS.map((asset) => [basename(asset), readFileSync(join(ROOT, 'src', asset))]))
  const packages = new Set()
  for (const entry of ENTRIES) {
    const bundle = await rolldown({
      input: { [basename(entry)]: join(ROOT, 'src', `${entry}.ts`) },
      cwd: ROOT,
      platform: 'node',
      tsconfig: false,
      external: EXTERNAL,
      onLog: (level, log) => {
        if (level === 'warn') throw new Error(log.message)
      },
    })
    const { output } = await bundle.generate({ dir, format: 'esm', minify: false, comments: false, sourcemap: true })
    await bundle.close()
    for (const file of output) {
      if (file.type === 'asset') files.set(file.fileName, withoutSources(file.source))
      else {
        files.set(file.fileName, file.code)
        for (const id of file.moduleIds) packages.add(folderOfPackage(id))
      }
    }
  }
  packages.delete(null)
  files.set('LICENSES.txt', licences([...packages].sort()))
  return files
}

/** A stack needs only names and lines; the sources themselves are in the repository. */
function withoutSources(map) {
  const { sourcesContent: _, ...rest } = JSON.parse(map)
  return JSON.stringify(rest)
}

/** Null for a module of ours. */
const folderOfPackage = (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? null

/** The licences of what is bundled ask for their notice in every copy; a text that several have word for word stands there once. */
function licences(folders) {
  const firstWith = new Map()
  const notices = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const texts = readdirSync(folder)
      .filter((file) => /^(licen[cs]e|notice|copying)\b/i.test(file))
      .map((file) => readFileSync(join(folder, file), 'utf8').trim())
    if (texts.length === 0) throw new Error(`${name} ${version} (${license}) brings no text of its licence`)
    const told = texts.map((text) => {
      const words = text.replace(/\s+/g, ' ')
      const first = firstWith.get(words)
      if (first === undefined) firstWith.set(words, name)
      return first === undefined ? text : `The same text, word for word, as that of ${first} above.`
    })
    return [`${name} ${version} (${license})`, ...told].join('\n\n')
  })
  return `${['The server contains these packages.', ...notices].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}
