// Whether what a page stored has reached the profile on the disk: browsers write it some seconds later, and one that is ended at once
// may lose it, which no person's browser is.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A token as storages have it. */
const TOKEN = /st_[0-9A-Za-z_-]{64}/
const FILE_BYTES_MAX = 8_000_000
const WAIT_MS_MAX = 20_000

function hasToken(profileDir: string): boolean {
  for (const name of readdirSync(profileDir, { recursive: true, encoding: 'utf8' })) {
    if (!/cookies|storage|webapps|leveldb|\.sqlite/i.test(name)) continue
    try {
      const path = join(profileDir, name)
      const stat = statSync(path)
      if (stat.isFile() && stat.size <= FILE_BYTES_MAX && TOKEN.test(readFileSync(path, 'latin1'))) return true
    } catch {
      // Browsers make and remove files all the time.
    }
  }
  return false
}

/** Resolves when a token is there, or after a while: some storages hide what they have. */
export async function untilStored(profileDir: string): Promise<void> {
  for (const until = Date.now() + WAIT_MS_MAX; Date.now() < until && !hasToken(profileDir); ) await sleep(250)
}
