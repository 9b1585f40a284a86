// The blocks of code that documents print, and running one as somebody who pastes it.

import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { plainText } from './pages.ts'
import { temporaryFolder } from './server.ts'

const root = new URL('../../../', import.meta.url).pathname

export interface Block {
  /** As the fence says it; of a page, what it looks like. */
  readonly language: string
  readonly code: string
}

/** The fenced blocks of a Markdown text. */
export const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }))

const LOOKS: readonly (readonly [RegExp, string])[] = [
  [/^[[{"]|^null$/, 'json'],
  [/^curl |^# SECRET/, 'sh'],
  [/^import hashlib/, 'python'],
  [/^package /, 'go'],
  [/^import \{/, 'js'],
]

/** The blocks of a page under /docs. */
export const blocksOfPage = (html: string): Block[] =>
  [...html.matchAll(/<pre[^>]*><code>([\s\S]*?)<\/code><\/pre>/g)].map(([, text = '']) => {
    const code = plainText(text)
    return { language: LOOKS.find(([look]) => look.test(code))?.[1] ?? '', code }
  })

export interface Ran {
  readonly code: number | null
  readonly said: string
}

/** `until`: what it prints when it works, of a command that never ends by itself. */
export function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  until?: string,
): Promise<Ran> {
  const child = spawn(command, args, {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // npx does not pass signals on: what it started ends with its group.
    detached: true,
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk
      if (until !== undefined && said.includes(until) && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, said }))
  })
}

/** Settings of curl that make a refusal a failure and say the status in a line of its own, without a word in the block. */
export function curlHome(): string {
  const dir = temporaryFolder()
  writeFileSync(join(dir, '.curlrc'), 'silent\nfail-with-body\nmax-time = 5\nwrite-out = "\\n%{http_code}\\n"\n')
  return dir
}

export const shell = (code: string, env: Readonly<Record<string, string>>, until?: string): Promise<Ran> =>
  run('bash', ['-eu', '-o', 'pipefail', '-c', code], env, until)

/** Modules of the package itself are found from below `build` only. */
const modules = join(root, `build/printed-${process.pid}`)
export const removeModules = (): void => rmSync(modules, { recursive: true, force: true })

/** What the published package for Node exports, from the modules it is made of. */
const NODE_PACKAGE = { '.': 'client', './express': 'express', './judge': 'judge', './next': 'next' } as const

/**
 * Express as far as printed servers use it: routes whose handlers are called one after the other, and files of a folder. Express
 * itself is no dependency.
 */
const EXPRESS = `import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
export default function express() {
  const routes = []
  let folder = null
  const add = (method) => (path, ...handlers) => routes.push({ method, path, handlers })
  const serve = (request, response) => {
    const path = request.url.split('?')[0]
    response.locals = {}
    response.status = (code) => { response.statusCode = code; return response }
    response.json = (body) => response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
    response.send = (body) => response.end(body)
    response.type = (kind) => response.setHeader('Content-Type', kind === 'html' ? 'text/html' : kind)
    const route = routes.find((one) => one.method === request.method && one.path === path)
    if (!route && folder && request.method === 'GET') return response.end(readFileSync(join(folder, path === '/' ? 'index.html' : path)))
    if (!route) return response.status(404).end()
    const step = (i) => (error) => {
      if (error) return response.status(500).end(String(error))
      route.handlers[i](request, response, step(i + 1))
    }
    step(0)()
  }
  return { get: add('GET'), post: add('POST'), use: (given) => { folder = given }, listen: (port, done) => createServer(serve).listen(port, '127.0.0.1', done) }
}
express.static = (folder) => folder
`

/** Where blocks and examples find the packages that they import. Resolves with the folder. */
export function layOutPackages(): string {
  const at = (path: string) => join(modules, 'node_modules', path)
  const write = (name: string, exported: Readonly<Record<string, string>>, files: Readonly<Record<string, string>>) => {
    mkdirSync(at(name), { recursive: true })
    const manifest = { name, version: '0.0.0', type: 'module', exports: exported }
    writeFileSync(at(`${name}/package.json`), JSON.stringify(manifest))
    for (const [file, text] of Object.entries(files)) writeFileSync(at(`${name}/${file}`), text)
  }
  const built = (file: string) => pathToFileURL(join(root, `build/src/client/${file}.js`)).href
  write(
    '@fingerpost/node',
    Object.fromEntries(Object.entries(NODE_PACKAGE).map(([entry, file]) => [entry, `./${file}.js`])),
    Object.fromEntries(
      Object.values(NODE_PACKAGE).map((file) => [`${file}.js`, `export * from ${JSON.stringify(built(file))}\n`]),
    ),
  )
  write('express', { '.': './express.js' }, { 'express.js': EXPRESS })
  return modules
}

let written = 0
/** The block as the body of a function that is given `names`, its imports in front. */
export async function asFunction(code: string, names: readonly string[]): Promise<(...given: unknown[]) => unknown> {
  const lines = code.split('\n')
  const imports = lines.filter((line) => line.startsWith('import '))
  const rest = lines.filter((line) => !line.startsWith('import '))
  const file = join(layOutPackages(), `${++written}.mjs`)
  writeFileSync(file, `${imports.join('\n')}\nexport default async (${names.join(', ')}) => {\n${rest.join('\n')}\n}\n`)
  return (await import(pathToFileURL(file).href)).default
}

/** The block as a module of its own. */
export async function asModule(code: string): Promise<Record<string, (...given: unknown[]) => unknown>> {
  const file = join(layOutPackages(), `${++written}.mjs`)
  writeFileSync(file, code)
  return import(pathToFileURL(file).href)
}
