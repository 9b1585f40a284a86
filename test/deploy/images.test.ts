// The images: built from files that are there, complete without the repository, and run as they should be.

import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, normalize, relative } from 'node:path'
import t from 'tap'
import { startChild } from '../helpers/child.ts'
import { sized } from '../helpers/depth.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import { filesUnder, read, root } from './deploy.ts'

t.teardown(cleanUp)

/** The quick run starts no server of its own. */
const STARTS = sized({ quick: false, usual: true, long: true })
const DOCKERFILES = ['deploy/single.Dockerfile', 'deploy/cluster.Dockerfile']
const manifest = JSON.parse(read('package.json')) as {
  name: string
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
  scripts: Record<string, string>
}

interface Instruction {
  readonly name: string
  readonly rest: string
}

/** The instructions of each stage, continued lines joined. */
function stagesOf(file: string): Instruction[][] {
  const text = read(file)
    .replace(/^#.*\n/gm, '')
    .replace(/\s*\\\n\s*/g, ' ')
  const stages: Instruction[][] = [[]]
  for (const line of text.split('\n').filter((line) => line.trim() !== '')) {
    const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line.trim()) ?? []
    if (name === undefined || rest === undefined) throw new Error(`${file}: ${line}`)
    if (name === 'FROM') stages.push([])
    stages.at(-1)?.push({ name, rest })
  }
  return stages
}

const only = (stage: readonly Instruction[], name: string): string[] =>
  stage.filter((instruction) => instruction.name === name).map(({ rest }) => rest)

const allowed = read('.dockerignore')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1))
const inContext = (path: string): boolean => allowed.some((entry) => path === entry || path.startsWith(`${entry}/`))

const bundled = filesUnder('build/server').filter((name) => name.endsWith('.js'))

/** Every file that is read or started by its place beside another one. */
function filesNamedByPlace(): string[] {
  const found: string[] = []
  for (const file of bundled) {
    for (const [, target = ''] of read(file).matchAll(/new URL\(\s*[`'"]([^`'"]+)[`'"],\s*import\.meta\.url/g)) {
      found.push(normalize(join(dirname(file), target.replace(/\$\{[^}]*\}/, '.js'))))
    }
  }
  return found
}

for (const file of DOCKERFILES) {
  const stages = stagesOf(file)
  const last = stages.at(-1) ?? []

  t.test(`${file}: what is copied into it exists and is let through by .dockerignore`, async (t) => {
    const sources = stages
      .flatMap((stage) => only(stage, 'COPY'))
      .filter((rest) => !rest.startsWith('--from='))
      .flatMap((rest) => rest.split(/\s+/).slice(0, -1))
    t.ok(sources.length > 8)
    for (const source of sources) {
      t.ok(existsSync(join(root, source)), source)
      t.ok(inContext(source), `${source} is in the context`)
    }
    const names = new Set(stages.flatMap((stage) => only(stage, 'FROM')).map((rest) => rest.split(' AS ')[1]))
    for (const rest of stages.flatMap((stage) => only(stage, 'COPY'))) {
      const from = /^--from=(\S+)/.exec(rest)?.[1]
      if (from !== undefined) t.ok(names.has(from), `stage ${from}`)
    }
  })

  t.test(`${file}: nothing in it moves by itself`, async (t) => {
    t.match(only(stages[0] ?? [], 'ARG')[0], /^NODE_IMAGE=node:\d+\.\d+\.\d+-trixie-slim$/)
    for (const stage of stages.slice(1)) t.match(only(stage, 'FROM')[0], /^\$\{NODE_IMAGE\}( AS \w+)?$/)
    const fetched = stages.flatMap((stage) => only(stage, 'ADD'))
    t.ok(fetched.length > 0)
    for (const rest of fetched) t.match(rest, /^--checksum=sha256:[0-9a-f]{64} https:\/\//)
    const installs = stages.flatMap((stage) => only(stage, 'RUN')).filter((rest) => /npm /.test(rest))
    for (const rest of installs) t.match(rest, /^npm ci (--omit=dev )?--ignore-scripts\b/)
    t.ok(installs.some((rest) => rest.includes('--omit=dev')))
  })

  t.test(`${file}: runs as nobody in particular, gets its signals, and starts as npm start does`, async (t) => {
    t.same(only(last, 'USER'), ['node'])
    t.same(only(last, 'STOPSIGNAL'), ['SIGTERM'])
    const command = JSON.parse(only(last, 'CMD')[0] ?? '') as string[]
    t.match(manifest.scripts.start, `exec ${command.join(' ')}`)
    const [, health] = /CMD (\[.*\])$/.exec(only(last, 'HEALTHCHECK')[0] ?? '') ?? []
    t.same(JSON.parse(health ?? ''), ['node', 'deploy/healthcheck.mjs', '/healthz'])
    const environment = only(last, 'ENV').join(' ')
    t.notMatch(environment, /ALLOW_PLAIN_HTTP|KEY|PASSWORD|TOKEN/, 'leaves what is unsafe or secret to the operator')
    const taken = last.filter(({ name }) => name === 'COPY').map(({ rest }) => rest)
    for (const needed of ['--from=build /app/build build', 'config config']) {
      t.ok(taken.includes(needed), needed)
    }
  })
}

t.test('every file that the server reads at runtime is in the images', async (t) => {
  const files = filesNamedByPlace()
  for (const name of ['schema.sql', 'commit.lua', 'chdb.child.js', 'shard.worker.js', 'load.worker.js']) {
    t.ok(files.includes(`build/server/${name}`), name)
  }
  for (const file of files) {
    t.ok(existsSync(join(root, file)), `${file} exists`)
    t.ok(/^build\/(server|sdk|docs|console|build-info\.json)\b/.test(file), `${file} is taken along`)
  }
})

t.test('the server imports nothing that only development has', async (t) => {
  // Its own name stands in what it prints for those who use it; the examples of the guides are theirs, and no server loads them.
  const known = new Set(
    [manifest.name, Object.keys(manifest.dependencies), Object.keys(manifest.peerDependencies)].flat(),
  )
  const modules = [
    ...filesUnder('build/src').filter((name) => name.endsWith('.js') && !name.startsWith('build/src/docs/examples/')),
    ...bundled,
  ]
  t.ok(modules.length > 50)
  const unknown: string[] = []
  for (const file of modules) {
    // Comments of bundled packages show imports, too: they are indented.
    const forms = bundled.includes(file)
      ? /(?:^import (?:[^'"]* from )?|\bimport\(|\b__require\()['"]([^.'"][^'"]*)['"]/gm
      : /(?:\bfrom |\bimport\(|^import )['"]([^.'"][^'"]*)['"]/gm
    for (const [, target = ''] of read(file).matchAll(forms)) {
      const name = target
        .split('/')
        .slice(0, target.startsWith('@') ? 2 : 1)
        .join('/')
      if (!target.startsWith('node:') && !builtinModules.includes(name) && !known.has(name)) {
        unknown.push(`${name} in ${file}`)
      }
    }
  }
  t.same(unknown, [])
})

t.test('what is bundled is named with its licence, and what was bundled of is found by lines', async (t) => {
  const licences = read('build/server/LICENSES.txt')
  const packages = new Set<string>()
  for (const file of bundled) {
    // The bundler's own helpers have no lines of ours.
    if (!read(file).includes('//# sourceMappingURL=')) {
      t.match(file, /rolldown-runtime/)
      continue
    }
    const { sources } = JSON.parse(read(`${file}.map`)) as { sources: string[] }
    for (const source of sources) {
      const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? []
      if (name !== undefined) packages.add(name)
      else t.ok(existsSync(join(root, 'build/server', source)), `${file} is made of ${source}`)
    }
  }
  t.ok(packages.has('ajv') && packages.has('nats'))
  for (const name of packages) t.match(licences, `\n${name} `, `the licence of ${name}`)
})

if (STARTS) {
  t.test('a server of nothing but the files of the image becomes ready, and its health check says so', async (t) => {
    const image = temporaryFolder()
    const files = ['package.json', 'build/build-info.json', 'deploy/healthcheck.mjs']
    for (const folder of ['build/server', 'build/sdk', 'build/docs', 'build/console', 'config'])
      files.push(...filesUnder(folder))
    for (const file of files) {
      mkdirSync(dirname(join(image, file)), { recursive: true })
      cpSync(join(root, file), join(image, file))
    }
    symlinkSync(relative(image, join(root, 'node_modules')), join(image, 'node_modules'))
    const server = await startServer({ main: join(image, 'build/server/main.js') })
    const check = async (path: string, port: number, name = 'FINGERPOST_PORT') => {
      const shell = `FINGERPOST_PORT=1; ${name}=${port}; export FINGERPOST_PORT ${name};`
      const { process: child } = startChild(join(image, 'deploy/healthcheck.mjs'), [path], shell)
      return await new Promise((resolve) => child.once('exit', resolve))
    }
    t.equal(await check('/readyz', server.port), 0)
    t.equal(await check('/nowhere', server.port), 1)
    t.equal(await check('/readyz', server.port, 'FINGERPOST_HTTP_PORT'), 0, 'as the server, it goes by the long name')
    for (const path of ['/docs/guides/rules', '/docs/docs.js', '/console/'])
      t.equal((await fetch(server.url + path)).status, 200, path)
    t.equal(await server.stop(), 0)
    t.equal(await check('/readyz', server.port), 1)
  })
}
