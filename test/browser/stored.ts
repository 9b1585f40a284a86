// Whether what a page stored has reached the profile on the disk: browsers write it some seconds later, and one that is ended at once
// may lose it, which no person's browser is.

import { readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { entriesOf } from '../helpers/folder.ts'

/** A token as storages have it. */
const TOKEN = /st_[0-9A-Za-z_-]{64}/
const FILE_BYTES_MAX = 8_000_000
const WAIT_MS_MAX = 30_000

/** Chromium's files that show what they have; its cookies are encrypted. Each is written in its own time. */
const CHROMIUM_STORES = [/\bLocal Storage\b/, /\bIndexedDB\b/]
const FIREFOX_STORES = [/cookies|storage|webapps|\.sqlite/i]

function hasToken(path: string): boolean {
  try {
    const stat = statSync(path)
    return stat.isFile() && stat.size <= FILE_BYTES_MAX && TOKEN.test(readFileSync(path, 'latin1'))
  } catch {
    // Browsers make and remove files all the time.
    return false
  }
}

function isStored(profileDir: string): boolean {
  const names = Array.from(entriesOf(profileDir), ({ path }) => relative(profileDir, path))
  const isChromium = names.some((name) => name.endsWith('Local State'))
  const stores = isChromium ? CHROMIUM_STORES : FIREFOX_STORES
  return stores.every((store) => names.some((name) => store.test(name) && hasToken(join(profileDir, name))))
}

/** Resolves when every store has a token, or after a while: some hide what they have. */
export async function untilStored(profileDir: string): Promise<void> {
  for (const until = Date.now() + WAIT_MS_MAX; Date.now() < until && !isStored(profileDir); ) await sleep(250)
}
