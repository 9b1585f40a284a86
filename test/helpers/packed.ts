// The packages as `npm run pack:all` makes them, and empty projects that install them.

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './server.ts'

const root = new URL('../../../', import.meta.url).pathname

export const MEGABYTE = 1_000_000
export const PACKAGES = ['browser', 'node', 'server'] as const
export type PackageName = (typeof PACKAGES)[number]
const FILES = { browser: 'fingerpost-browser', node: 'fingerpost-node', server: 'fingerpost' } as const

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

export const packAll = (): void =>
  void execFileSync(process.execPath, [join(root, '.scripts/pack.mjs')], { stdio: 'pipe' })

export const tarballOf = (name: PackageName): string => join(root, 'build/packages', `${FILES[name]}-${version}.tgz`)
export const tarballBytes = (name: PackageName): number => statSync(tarballOf(name)).size

/** The files in it, and their length in all. */
export function contentsOf(name: PackageName): { readonly files: readonly string[]; readonly bytes: number } {
  const folder = join(root, 'build/packages', name)
  const listed = execFileSync('tar', ['-tzf', tarballOf(name)], { encoding: 'utf8' })
  const files = listed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^package\//, ''))
  return { files, bytes: files.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0) }
}

export interface Project {
  readonly dir: string
  write(name: string, text: string): void
  /** Runs a program in the project and resolves with what it printed; fails with what it said when it ends with another code than 0. */
  run(program: string, args: readonly string[], env?: Readonly<Record<string, string>>): string
}

/** An empty project that has installed `packages`, tarballs or names at the registry. */
export function makeProject(packages: readonly string[], options: readonly string[] = ['--offline']): Project {
  const dir = temporaryFolder()
  const project: Project = {
    dir,
    write: (name, text) => writeFileSync(join(dir, name), text),
    run(program, args, env = {}) {
      try {
        const all = { ...process.env, NODE_OPTIONS: '', ...env }
        return execFileSync(program, args, { cwd: dir, encoding: 'utf8', stdio: 'pipe', env: all })
      } catch (error) {
        const { stdout, stderr } = error as { stdout: string; stderr: string }
        throw new Error(`${program} ${args.join(' ')}:\n${stdout}\n${stderr}`)
      }
    },
  }
  project.write('package.json', '{ "name": "shop", "private": true, "type": "module" }')
  project.run('npm', ['install', '--no-audit', '--no-fund', ...options, ...packages])
  return project
}

/** Every file of an installed package. */
export const installedFiles = ({ dir }: Project, name: string): readonly string[] =>
  readdirSync(join(dir, 'node_modules', name), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
