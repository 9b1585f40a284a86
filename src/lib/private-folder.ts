// Taking a folder away from everybody but the user of this process: 0700 for folders, 0600 for files, whoever made them.

import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'

const OTHERS = 0o077

/**
 * The folder and what lies in it, but not what lies in a folder named in `closed`, which others cannot enter then. What belongs
 * to somebody else, such as the root of a mounted disk, stays as it is: what is made inside is private all the same.
 */
export function makePrivate(dir: string, closed: readonly string[] = []): void {
  const found = lstatSync(dir, { throwIfNoEntry: false })
  if (found === undefined || found.isSymbolicLink()) return
  if ((found.mode & OTHERS) !== 0) restrict(dir, found.isDirectory() ? 0o700 : 0o600)
  if (!found.isDirectory() || closed.includes(basename(dir))) return
  for (const name of readdirSync(dir)) makePrivate(join(dir, name), closed)
}

function restrict(path: string, mode: number): void {
  try {
    chmodSync(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'EROFS' && code !== 'ENOENT') throw error
  }
}
