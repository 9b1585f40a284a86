// The blocks of code that documents print, and running one as somebody who pastes it.

import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { temporaryFolder } from '../helpers/server.ts'
import { root } from './deploy.ts'

export interface Block {
  /** As the fence says it; of a page, what it looks like. */
  readonly language: string
  readonly code: string
}

/** The fenced blocks of a Markdown text. */
export const blocksOf = (markdown: string): Block[] =>
  [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }))

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const plainText = (html: string): string =>
  html.replaceAll(/<\/?i[^>]*>/g, '').replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name] ?? '')

const LOOKS: readonly (readonly [RegExp, string])[] = [
  [/^[[{"]|^null$/, 'json'],
  [/^curl |^# SECRET/, 'sh'],
  [/^import hashlib/, 'python'],
  [/^package /, 'go'],
  [/^import \{/, 'js'],
]

/** The blocks of the page at /docs. */
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

let written = 0
/** The block as the body of a function that is given `names`, its imports in front. */
export async function asFunction(code: string, names: readonly string[]): Promise<(...given: unknown[]) => unknown> {
  const lines = code.split('\n')
  const imports = lines.filter((line) => line.startsWith('import '))
  const rest = lines.filter((line) => !line.startsWith('import '))
  mkdirSync(modules, { recursive: true })
  const file = join(modules, `${++written}.mjs`)
  writeFileSync(file, `${imports.join('\n')}\nexport default async (${names.join(', ')}) => {\n${rest.join('\n')}\n}\n`)
  return (await import(pathToFileURL(file).href)).default
}

/** The block as a module of its own. */
export async function asModule(code: string): Promise<Record<string, (...given: unknown[]) => unknown>> {
  mkdirSync(modules, { recursive: true })
  const file = join(modules, `${++written}.mjs`)
  writeFileSync(file, code)
  return import(pathToFileURL(file).href)
}
