// What lies in a folder that a running server writes to, where files come and go while they are looked at, and copies of folders.

import { cpSync, type Dirent, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

function whatIsThere<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return otherwise
    throw error
  }
}

/** Every file and folder below it, a folder before what is in it. What a link leads to is looked into where it lies. */
export function* entriesOf(folder: string): Generator<{ readonly path: string; readonly entry: Dirent }, void> {
  for (const entry of whatIsThere(() => readdirSync(folder, { withFileTypes: true }), [])) {
    const path = join(folder, entry.name)
    yield { path, entry }
    if (entry.isDirectory()) yield* entriesOf(path)
  }
}

/** Every file below it, one after the other. */
export function* filesOf(folder: string): Generator<{ readonly path: string; readonly bytes: Buffer }, void> {
  for (const { path, entry } of entriesOf(folder)) {
    if (entry.isFile()) yield { path, bytes: whatIsThere(() => readFileSync(path), Buffer.alloc(0)) }
  }
}

/** A data folder that no process has. What says who had it stays behind. */
export function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !lstatSync(path).isSocket() })
}
