// The one thread of a process that acts on a file that all of them wait for: the one that removes it.

import { unlinkSync } from 'node:fs'

/** Whether this call removed the file. Of several threads that try at once one is told so; `rmSync` would tell each that it did. */
export function isRemovedHere(path: string): boolean {
  try {
    unlinkSync(path)
    return true
  } catch {
    return false
  }
}
