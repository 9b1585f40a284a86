// Whatever code, tests and documents refer to is in this repository: decisions by their numbers, and documents by their paths.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { read, root } from './deploy.ts'

const ROOMS = ['src', 'bench', 'test', 'deploy', '.github']
const TEXT = /\.(ts|mjs|md|sql|lua|ya?ml)$/

/** Paths of texts below a folder of the repository. */
const textsOf = (room: string): string[] =>
  readdirSync(join(root, room), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && TEXT.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map((entry) => join(entry.parentPath, entry.name))

const files = ROOMS.flatMap(textsOf).map((path) => ({
  path: path.slice(root.length),
  text: readFileSync(path, 'utf8'),
}))

const numbersIn = (text: string, pattern: RegExp): number[] => [...text.matchAll(pattern)].map(([, n]) => Number(n))

const decided = textsOf('src/decisions').flatMap((path) => numbersIn(readFileSync(path, 'utf8'), /^## D(\d+)$/gm))

t.test('every decision has one number, and the numbers have no gap', (t) => {
  t.same(
    decided.toSorted((a, b) => a - b),
    decided.map((_, i) => i + 1),
  )
  t.end()
})

t.test('every decision that is named exists', (t) => {
  const known = new Set(decided)
  const named = files.flatMap(({ path, text }) =>
    numbersIn(text, /(?<![\w:#])D(\d{1,3})(?![\w:])/g).map((n) => ({ path, n })),
  )
  t.ok(named.length > decided.length, 'references are found')
  t.same(
    named.filter(({ n }) => !known.has(n)),
    [],
  )
  t.end()
})

t.test('the index of decisions names each of them with its file', (t) => {
  const index = read('src/decisions/README.md')
  for (const [, n, file] of index.matchAll(/\[D(\d+)\]\((\S+?)#d\d+\)/g)) {
    t.ok(read(`src/decisions/${file}`).includes(`\n## D${n}\n`), `D${n} is in ${file}`)
  }
  t.same(
    [...new Set(numbersIn(index, /\[D(\d+)\]/g))].toSorted((a, b) => a - b),
    decided.toSorted((a, b) => a - b),
  )
  t.end()
})

t.test('no file of src refers to a paragraph of a document by §', (t) => {
  t.same(
    files.filter(({ path, text }) => /^\/?src\//.test(path) && text.includes('§')).map(({ path }) => path),
    [],
  )
  t.end()
})

t.test('headings of documents that code refers to exist', (t) => {
  const references = files.flatMap(({ path, text }) =>
    [...text.matchAll(/\((src\/(?:docs\/contract|README)\.md), ([^,;)\n]+)/g)].map(([, document = '', heading]) => ({
      path,
      document,
      heading,
    })),
  )
  t.ok(references.length > 0, 'references are found')
  t.same(
    references.filter(({ document, heading }) => !read(document).includes(`\n## ${heading}\n`)),
    [],
  )
  t.end()
})

t.test('every file that a document links to is there', (t) => {
  const documents = [
    ...files.filter(({ path }) => path.endsWith('.md')),
    { path: 'README.md', text: read('README.md') },
  ]
  const missing = documents.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^(?:https?:|mailto:|\/)/.test(target))
      .filter((target) => !existsSync(join(root, dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  )
  t.same(missing, [])
  t.end()
})
