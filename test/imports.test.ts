// Holds the source tree to its shape: who may import whom, what a worker or child process may load, how long a file may be
// and that it says what it owns; and that tests share only what is in their folder of helpers. The rules are functions over a
// map of files, proven below on planted violations.
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type ESTree, parseSync, Visitor } from 'vite'

/** Paths below src, with '/', to their text. */
type Sources = ReadonlyMap<string, string>
/** `load` runs the target in this thread, `type` leaves no trace at run time, `url` names a file to be started or read. */
type Reference = { kind: 'load' | 'type' | 'url'; to: string }
type Module = { references: Reference[]; problems: string[] }

// From left to right: a folder imports only from ranks before its own, never from another folder of the same rank.
const LINE: readonly (readonly string[])[] = [
  ['domain'],
  ['lib'],
  ['http', 'log', 'bus', 'kv', 'limits', 'clickhouse'],
  ['records'],
  ['events'],
  ['rules', 'identity', 'ipintel'],
  ['ingress', 'engine', 'control', 'sink', 'dispatcher', 'reads'],
  ['jobs'],
  ['api'],
  ['client'],
  ['settings.ts'],
  ['config.ts'],
  ['role-settings.ts'],
  ['ops'],
  ['ports.ts'],
  ['ports-cluster.ts'],
  ['shards'],
  ['advice.ts', 'commands.ts'],
  ['process-health.ts'],
  ['app.ts'],
  ['server.ts'],
  ['main.ts'],
]
/** What runs in browsers, and of which folders it takes types. */
const BROWSER: ReadonlyMap<string, readonly string[]> = new Map([
  ['sdk', ['domain']],
  ['console', ['domain', 'api']],
])
const PORTS = ['log', 'bus', 'kv', 'limits', 'clickhouse']
const LINES_MAX = 330

const placeOf = (path: string): string => path.split('/')[0] ?? path
const rankOf = (path: string): number => LINE.findIndex((rank) => rank.includes(placeOf(path)))
/** Listens and stores by itself: it is a process in all but its memory. */
const isShard = (path: string): boolean => path === 'shards/shard.worker.ts'
const isEntry = (path: string): boolean => /\.(worker|child)\.ts$/.test(path)

/** Loads the module that `tracing.sdk` names: the operator's own, and none of ours. */
const loadsForeign = (path: string): boolean => path === 'lib/spans.ts'

/** The text a literal or the fixed beginning of a template stands for; null when it is computed. */
function fixedText(node: ESTree.Node | undefined): string | null {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value
  if (node?.type === 'TemplateLiteral') return node.quasis[0]?.value.cooked || null
  return null
}

const isModuleUrl = (node: ESTree.Node): boolean =>
  node.type === 'MemberExpression' && node.object.type === 'MetaProperty' && fixedName(node.property) === 'url'
const fixedName = (node: ESTree.Node): string | null => (node.type === 'Identifier' ? node.name : null)

/** Everything a module refers to, relative targets resolved to paths below src, packages left as they are. */
function parse(path: string, sources: Sources): Module {
  const references: Reference[] = []
  const problems: string[] = []
  const { program, errors } = parseSync(path, sources.get(path) ?? '')
  for (const error of errors) problems.push(`${path}: ${error.message}`)

  const add = (kind: Reference['kind'], target: string): void => {
    if (!target.startsWith('.')) references.push({ kind, to: target })
    else {
      const to = posix.join(posix.dirname(path), target)
      const built = kind === 'url' ? `${to.replace(/\.js$/, '')}.ts` : to
      references.push({ kind, to: sources.has(built) ? built : to })
    }
  }
  // The address of a worker is made from a relative path and this module's URL, by `new URL` or by a function of ours.
  const addUrl = (args: readonly ESTree.Node[]): void => {
    const target = fixedText(args[0])
    if (target?.startsWith('.') && args.slice(1).some(isModuleUrl)) add('url', target)
  }
  new Visitor({
    ImportDeclaration: (node) => add(node.importKind === 'type' ? 'type' : 'load', node.source.value),
    ExportNamedDeclaration: (node) => {
      if (node.source) add(node.exportKind === 'type' ? 'type' : 'load', node.source.value)
    },
    ExportAllDeclaration: (node) => add(node.exportKind === 'type' ? 'type' : 'load', node.source.value),
    TSImportType: (node) => add('type', node.source.value),
    ImportExpression: (node) => {
      const target = fixedText(node.source)
      if (target !== null && node.source.type === 'Literal') add('load', target)
      else if (!loadsForeign(path)) problems.push(`${path}: import() of a computed name`)
    },
    NewExpression: (node) => addUrl(node.arguments),
    CallExpression: (node) => addUrl(node.arguments),
  }).visit(program)
  return { references, problems }
}

const parseAll = (sources: Sources): Map<string, Module> =>
  new Map([...sources.keys()].map((path) => [path, parse(path, sources)]))

/** Violations of the import line: one sentence each. */
function checkLine(modules: ReadonlyMap<string, Module>): string[] {
  const found: string[] = []
  for (const [path, { references, problems }] of modules) {
    const place = placeOf(path)
    found.push(...problems)
    if (rankOf(path) === -1 && !BROWSER.has(place)) found.push(`${path}: ${place} has no place on the import line`)
    for (const { kind, to } of references) {
      const said = `${path} ${kind === 'url' ? 'refers to' : 'imports'} ${to}`
      if (to === 'uWebSockets.js' && place !== 'http') found.push(`${said}: only http knows it`)
      // Files that are read are found from where the built module lies, so their path says nothing about src.
      if (!to.endsWith('.ts') || (kind === 'url' && to.startsWith('..'))) continue
      if (to.startsWith('..')) found.push(`${said}: outside src`)
      else if (placeOf(to) === place) continue
      else if (BROWSER.has(place)) {
        const known = BROWSER.get(place) ?? []
        if (!known.includes(placeOf(to))) found.push(`${said}: ${place} knows only ${known.join(' and ')}`)
        else if (kind !== 'type') found.push(`${said}: ${place} takes only types from ${placeOf(to)}`)
      } else if (BROWSER.has(placeOf(to))) found.push(`${said}: that runs in a browser`)
      else if (rankOf(to) >= rankOf(path)) found.push(`${said}: not to the left of ${place}`)
    }
  }
  return found
}

// A port's own file declares types and limits; its neighbours are the implementation. A child process that is itself part of
// an implementation may load its folder, though not the file that chooses the backend.
function mayLoad(entry: string, path: string): boolean {
  const folder = placeOf(path)
  if (folder === 'http') return false
  if (!PORTS.includes(folder) || path === `${folder}/${folder}.ts`) return true
  return folder === placeOf(entry) && path !== `${folder}/open.ts`
}

/** What worker and child entries load although they must not, each with the chain of imports that leads there. */
function checkEntries(modules: ReadonlyMap<string, Module>): string[] {
  const found: string[] = []
  for (const entry of [...modules.keys()].filter((path) => isEntry(path) && !isShard(path))) {
    const chains = new Map([[entry, [entry]]])
    for (const [path, chain] of chains) {
      for (const { kind, to } of modules.get(path)?.references ?? []) {
        if (kind !== 'load' || chains.has(to)) continue
        if (mayLoad(entry, to)) chains.set(to, [...chain, to])
        else found.push(`${entry} loads ${to}: ${[...chain, to].join(' → ')}`)
      }
    }
  }
  return found
}

/** Files that import one another in a circle, types included: nobody can read one of them without the others. */
function checkCircles(modules: ReadonlyMap<string, Module>): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const path: string[] = []
  const visit = (file: string): void => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (path.includes(file) || done.has(file)) return
    path.push(file)
    for (const { kind, to } of modules.get(file)?.references ?? []) if (kind !== 'url' && modules.has(to)) visit(to)
    path.pop()
    done.add(file)
  }
  for (const file of modules.keys()) visit(file)
  return found
}

const lengthOf = (text: string): number => text.split('\n').length - (text.endsWith('\n') ? 1 : 0)

function checkLengths(sources: Sources): string[] {
  return [...sources]
    .filter(([, text]) => lengthOf(text) > LINES_MAX)
    .map(([path, text]) => `${path} has ${lengthOf(text)} lines, more than ${LINES_MAX}`)
}

/** Files that do not open with a comment of at least one whole sentence. */
function checkOpenings(sources: Sources): string[] {
  const opening = /^(?:#!.*\n)?((?:\/\/.*\n)+|\/\*[\s\S]*?\*\/)/
  return [...sources]
    .filter(([, text]) => !/\w+ \w+[\s\S]*[.!?:](?:\s|$)/.test(opening.exec(text)?.[1] ?? ''))
    .map(([path]) => `${path} does not open with a sentence that says what it owns`)
}

/** Suites that hold any backend to its contract: tests of other folders run them on theirs. */
const SUITES = 'contract'
const HELPERS = 'helpers'

/** Files below test that import from a folder beside their own which is neither of helpers nor of suites. */
function checkTests(tests: Sources): string[] {
  const found: string[] = []
  for (const [path, { references }] of parseAll(tests)) {
    for (const { to } of references) {
      const place = placeOf(to)
      if (!to.endsWith('.ts') || to.startsWith('..') || place === placeOf(path) || place === HELPERS) continue
      if (place !== SUITES || placeOf(path) === HELPERS)
        found.push(`${path} imports ${to}: what folders share is in ${HELPERS}`)
    }
  }
  return found
}

function readSources(below = 'src'): Sources {
  const root = fileURLToPath(new URL(`../../${below}`, import.meta.url))
  return new Map(
    readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .sort()
      .map((name) => [name.replaceAll('\\', '/'), readFileSync(join(root, name), 'utf8')]),
  )
}

const fixture = (files: Record<string, string>): Sources => new Map(Object.entries(files))
const lineOf = (files: Record<string, string>): string[] => checkLine(parseAll(fixture(files)))
const entriesOf = (files: Record<string, string>): string[] => checkEntries(parseAll(fixture(files)))

t.test('every kind of import to the right is reported', async (t) => {
  const forms = [
    `import { a } from '../kv/a.ts'`,
    `import type { A } from '../kv/a.ts'`,
    `import '../kv/a.ts'`,
    `export { a } from '../kv/a.ts'`,
    `export * from '../kv/a.ts'`,
    `type A = import('../kv/a.ts').A`,
    `const a = await import('../kv/a.ts')`,
    `const a = new URL('../kv/a.ts', import.meta.url)`,
    `const a = workerUrl('../kv/a', import.meta.url)`,
    `const a = new URL('../kv/a.js', import.meta.url)`,
    'const a = new URL(`../kv/a.ts`, import.meta.url)',
  ]
  for (const form of forms)
    t.match(lineOf({ 'lib/x.ts': form, 'kv/a.ts': '' }), [/lib\/x\.ts .*kv\/a\.ts: not to the/], form)
})

t.test('imports to the left, within a folder, of packages and in comments or texts are allowed', async (t) => {
  const text = `// import '../main.ts'
    import { a } from '../domain/a.ts'
    import { b } from './b.ts'
    import { pino } from 'pino'
    const quoted = "import '../main.ts'"
    const sql = new URL('../../../src/kv/schema.sql', import.meta.url)`
  t.same(lineOf({ 'kv/x.ts': text }), [])
})

t.test('neighbours of one rank, unknown folders and paths out of src are reported', async (t) => {
  t.match(lineOf({ 'kv/x.ts': `import '../log/a.ts'` }), [/not to the left of kv/])
  t.match(lineOf({ 'utils/x.ts': '' }), [/utils has no place/])
  t.match(lineOf({ 'kv/x.ts': `import '../../test/a.ts'` }), [/outside src/])
  t.match(lineOf({ 'kv/x.ts': 'await import(name)' }), [/computed name/])
  t.match(lineOf({ 'api/x.ts': `import uWS from 'uWebSockets.js'` }), [/only http/])
  t.match(lineOf({ 'kv/x.ts': 'const = 1' }), [/kv\/x\.ts: /])
})

t.test('browser code takes nothing but types from domain, and nobody takes from it', async (t) => {
  t.same(lineOf({ 'sdk/x.ts': `import type { A } from '../domain/a.ts'\nimport { b } from './b.ts'` }), [])
  t.match(lineOf({ 'sdk/x.ts': `import { a } from '../domain/a.ts'` }), [/only types from domain/])
  t.match(lineOf({ 'sdk/x.ts': `import { type A } from '../domain/a.ts'` }), [/only types from domain/])
  t.match(lineOf({ 'sdk/x.tsx': `import type { A } from '../lib/a.ts'` }), [/knows only domain/])
  t.match(lineOf({ 'api/x.ts': `import { a } from '../sdk/a.ts'` }), [/runs in a browser/])
  t.same(lineOf({ 'console/x.tsx': `import type { A } from '../api/a.ts'` }), [])
  t.match(lineOf({ 'console/x.tsx': `import { a } from '../api/a.ts'` }), [/only types from api/])
  t.match(lineOf({ 'console/x.tsx': `import type { A } from '../reads/a.ts'` }), [/knows only domain and api/])
})

t.test('what a worker loads is followed to the end', async (t) => {
  const files = {
    'engine/read.worker.ts': `import { a } from './a.ts'`,
    'engine/a.ts': `export { b } from '../records/b.ts'`,
    'records/b.ts': `const kv = await import('../kv/lmdb.ts')`,
    'kv/lmdb.ts': '',
  }
  t.match(entriesOf(files), [/read\.worker\.ts → engine\/a\.ts → records\/b\.ts → kv\/lmdb\.ts/])
  t.match(entriesOf({ 'engine/d.worker.ts': `import '../http/server.ts'` }), [/loads http/])
  t.match(entriesOf({ 'clickhouse/c.child.ts': `import './open.ts'` }), [/loads clickhouse\/open/])
})

t.test('a worker may use types, a port declaration and the folder it belongs to', async (t) => {
  t.same(entriesOf({ 'engine/d.worker.ts': `import type { Kv } from '../kv/lmdb.ts'` }), [])
  t.same(entriesOf({ 'engine/d.worker.ts': `import { RECORD_BYTES_MAX } from '../log/log.ts'` }), [])
  t.same(entriesOf({ 'clickhouse/c.child.ts': `import { a } from './guard.ts'`, 'clickhouse/guard.ts': '' }), [])
})

t.test('files that import one another in a circle are reported, however many and whatever they take', async (t) => {
  const of = (files: Record<string, string>) => checkCircles(parseAll(fixture(files)))
  const next = (to: string) => `import type { A } from './${to}.ts'`
  t.same(of({ 'lib/a.ts': next('b'), 'lib/b.ts': next('a') }), ['lib/a.ts → lib/b.ts → lib/a.ts'])
  const three = { 'lib/a.ts': next('b'), 'lib/b.ts': next('c'), 'lib/c.ts': next('b') }
  t.same(of(three), ['lib/b.ts → lib/c.ts → lib/b.ts'])
  t.same(of({ ...three, 'lib/c.ts': '', 'lib/d.ts': `${next('b')}\n${next('c')}` }), [])
})

t.test('a test that imports from the folder of another one is reported', async (t) => {
  const of = (path: string, target: string) =>
    checkTests(fixture({ [path]: `import { a } from '${target}'`, 'api/a.ts': '' }))
  t.match(of('ops/x.test.ts', '../api/a.ts'), [/ops\/x\.test\.ts imports api\/a\.ts/])
  t.match(of('helpers/x.ts', '../contract/a.ts'), [/helpers\/x\.ts imports contract\/a\.ts/])
  for (const target of ['../helpers/a.ts', './a.ts', '../contract/a.ts', '../../src/kv/a.ts']) {
    t.same(of('ops/x.test.ts', target), [], target)
  }
})

t.test('files that are too long or say nothing of themselves are reported', async (t) => {
  t.match(checkLengths(fixture({ 'a.ts': '\n'.repeat(331) })), [/331 lines/])
  t.same(checkLengths(fixture({ 'a.ts': '\n'.repeat(330) })), [])
  t.match(checkOpenings(fixture({ 'a.ts': 'const a = 1' })), [/does not open/])
  t.match(checkOpenings(fixture({ 'a.ts': '// things\nconst a = 1' })), [/does not open/])
  t.same(checkOpenings(fixture({ 'a.ts': '#!/usr/bin/env node\n// Owns\n// nothing at all.\n' })), [])
})

t.test('the source tree follows all of it', async (t) => {
  const sources = readSources()
  const modules = parseAll(sources)
  t.ok(sources.size > 20, 'the sources were found')
  t.same(checkLine(modules), [], 'a folder imports only from its left')
  t.same(checkCircles(modules), [], 'no files import one another in a circle')
  t.same(checkEntries(modules), [], 'workers and child processes but shards stay clear of ports and http')
  t.same(checkLengths(sources), [], 'files are short')
  t.same(checkOpenings(sources), [], 'every file says what it owns')
})

t.test('tests share what is in helpers, and each helper has its line', async (t) => {
  const tests = readSources('test')
  t.same(checkTests(tests), [])
  const root = new URL('../../test/helpers/', import.meta.url)
  const listed = [...readFileSync(new URL('README.md', root), 'utf8').matchAll(/^\| `([^`]+)` \| \S/gm)].map(
    ([, name]) => name,
  )
  t.same(
    listed,
    readdirSync(root)
      .filter((name) => name.endsWith('.ts'))
      .sort(),
  )
})
