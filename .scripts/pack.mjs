// Makes the packages to be published into build/packages, each as a folder and as a tarball: `fingerpost`, the server as it runs,
// `@fingerpost/browser` of src/sdk, `@fingerpost/node` of src/client. `npm run pack:all -- node` makes one of them.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'
import { EXTERNAL } from './build-server.mjs'
import { plainTypes } from './pack-types.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUT = join(ROOT, 'build/packages')
const root = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const COMMON = { version: root.version, license: root.license, type: 'module' }

const PACKAGES = { browser: packBrowser, node: packNode, server: packServer }

const json = (value) => `${JSON.stringify(value, null, 2)}\n`
const copy = (from, to) => cpSync(join(ROOT, from), to, { recursive: true })
const tsc = (project) =>
  execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', project], { stdio: 'inherit' })

/** ESM, the classic script, their types and the React hook. */
async function packBrowser(dir) {
  copy('build/sdk/sdk.mjs', join(dir, 'sdk.mjs'))
  copy('build/sdk/sdk.js', join(dir, 'sdk.js'))
  const project = join(dir, 'tsconfig.json')
  const src = join(ROOT, 'src/sdk')
  const compile = (files, more) => {
    const paths = { '@fingerpost/browser': [join(src, 'esm.ts')] }
    const compilerOptions = {
      noEmit: false,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      paths,
      rootDir: src,
      ...more,
    }
    writeFileSync(
      project,
      json({ extends: join(src, 'tsconfig.json'), compilerOptions, include: files.map((file) => join(src, file)) }),
    )
    tsc(project)
  }
  compile(['react.ts', 'peer-react.d.ts'], { declaration: true, outDir: join(dir, 'made') })
  rmSync(project)
  cpSync(join(dir, 'made/react.js'), join(dir, 'react.js'))
  for (const file of reachable(join(dir, 'made'), ['esm.d.ts', 'react.d.ts'])) {
    writeFileAt(join(dir, 'types', file), withJsSpecifiers(readFileSync(join(dir, 'made', file), 'utf8')))
  }
  rmSync(join(dir, 'made'), { recursive: true })
  copy('src/sdk/README.md', join(dir, 'README.md'))
  const types = './types/esm.d.ts'
  return {
    name: '@fingerpost/browser',
    description: 'Identifies browsers with a Fingerpost server: ESM, classic script, types and a React hook',
    ...COMMON,
    sideEffects: false,
    types,
    exports: {
      '.': { types, default: './sdk.mjs' },
      './react': { types: './types/react.d.ts', default: './react.js' },
      './sdk.js': './sdk.js',
      './package.json': './package.json',
    },
    unpkg: './sdk.js',
    jsdelivr: './sdk.js',
    peerDependencies: { react: '>=17' },
    peerDependenciesMeta: { react: { optional: true } },
  }
}

/** The client, the verifier of webhooks and the helpers for Express and for route handlers, of nothing but fetch and Web Crypto. */
async function packNode(dir) {
  await compileClient(dir, [
    'client/client.ts',
    'client/webhooks.ts',
    'client/judge.ts',
    'client/express.ts',
    'client/next.ts',
  ])
  copy('src/client/README.md', join(dir, 'README.md'))
  const entry = (name) => ({ types: `./client/${name}.d.ts`, default: `./client/${name}.js` })
  return {
    name: '@fingerpost/node',
    description: 'Client of the Fingerpost server API, verifier of its webhooks, helpers for Express and Next.js',
    ...COMMON,
    engines: { node: '>=20' },
    sideEffects: false,
    types: './client/client.d.ts',
    exports: {
      '.': entry('client'),
      './webhooks': entry('webhooks'),
      './judge': entry('judge'),
      './express': entry('express'),
      './next': entry('next'),
      './package.json': './package.json',
    },
  }
}

/** The server as the images have it, the client under the names that the repository exports. */
async function packServer(dir) {
  const isShipped = (path) => !path.endsWith('.map')
  for (const folder of ['build/server', 'build/sdk', 'build/docs', 'build/console']) {
    cpSync(join(ROOT, folder), join(dir, folder), { recursive: true, filter: isShipped })
  }
  copy('build/build-info.json', join(dir, 'build/build-info.json'))
  copy('config', join(dir, 'config'))
  copy('README.md', join(dir, 'README.md'))
  await compileClient(dir, ['client/client.ts', 'domain/webhook-signature.ts'], ['node'])
  const { name, description, engines, bin, dependencies, peerDependencies, overrides } = root
  const entry = (file) => ({ types: `./${file}.d.ts`, default: `./${file}.js` })
  const external = ([dependency]) => EXTERNAL.test(dependency)
  return {
    name,
    description,
    ...COMMON,
    engines,
    bin,
    exports: {
      './client': entry('client/client'),
      './webhooks': entry('domain/webhook-signature'),
      './package.json': './package.json',
    },
    // All others are in the bundle.
    dependencies: Object.fromEntries(Object.entries(dependencies).filter(external)),
    // On machines that have no build of it the server still works in a cluster.
    optionalDependencies: peerDependencies,
    ...(overrides === undefined ? {} : { overrides }),
  }
}

/** Compiles sources of src with the types of the API spelled out, by the rules of every runtime with fetch unless `types` are given. */
async function compileClient(dir, entries, types = []) {
  const stage = join(OUT, '.stage')
  rmSync(stage, { recursive: true, force: true })
  for (const folder of ['client', 'domain']) copy(`src/${folder}`, join(stage, folder))
  writeFileSync(join(stage, 'client/types.ts'), await plainTypes(join(ROOT, 'src/client/types.ts')))
  const compilerOptions = {
    ...{ rootDir: '.', outDir: 'made', types, lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'] },
    ...{ declaration: true, sourceMap: false, target: 'es2022', removeComments: false },
  }
  const project = join(stage, 'tsconfig.json')
  writeFileSync(
    project,
    json({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, files: entries, include: [], exclude: [] }),
  )
  tsc(project)
  for (const file of readdirSync(join(stage, 'made'), { recursive: true })) {
    if (!file.endsWith('.js') && !file.endsWith('.d.ts')) continue
    const text = readFileSync(join(stage, 'made', file), 'utf8')
    writeFileAt(join(dir, file), file.endsWith('.d.ts') ? withJsSpecifiers(text) : text)
  }
  rmSync(stage, { recursive: true })
}

function writeFileAt(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The compiler leaves `./x.ts` in declarations, and no such file is shipped. */
const withJsSpecifiers = (text) => text.replace(/((?:from |import\()['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2')

/** Declarations that `files` of a folder import, and they themselves. */
function reachable(folder, files) {
  const found = new Set()
  const visit = (file) => {
    if (found.has(file)) return
    found.add(file)
    for (const [, name] of readFileSync(join(folder, file), 'utf8').matchAll(/['"]\.\/([^'"]+)\.ts['"]/g))
      visit(`${name}.d.ts`)
  }
  files.forEach(visit)
  return [...found]
}

/** Resolves with the path of the tarball and what npm says of it. */
async function pack(name) {
  const dir = join(OUT, name)
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  const manifest = await PACKAGES[name](dir)
  copy('LICENSE', join(dir, 'LICENSE'))
  writeFileSync(join(dir, 'package.json'), json(manifest))
  const said = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', OUT], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ filename, size, unpackedSize, entryCount }] = JSON.parse(said)
  return `${join('build/packages', filename)}: ${entryCount} files, ${kb(size)}, ${kb(unpackedSize)} unpacked`
}

const kb = (bytes) => `${Math.ceil(bytes / 1_000)} KB`

const wanted = process.argv.slice(2)
const unknown = wanted.find((name) => !Object.hasOwn(PACKAGES, name))
if (unknown !== undefined) throw new Error(`no package ${unknown}: there are ${Object.keys(PACKAGES).join(', ')}`)
await build({ ifStale: true, only: 'server' })
for (const name of wanted.length > 0 ? wanted : Object.keys(PACKAGES)) console.log(await pack(name))
