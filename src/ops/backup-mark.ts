// When the deployment of a data folder was last backed up: a small file beside it, for the doctor.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = 'last-backup.json'

export function markBackup(dataDir: string, at: string): void {
  const path = join(dataDir, FILE)
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify({ at })}\n`, { mode: 0o600 })
  renameSync(draft, path)
}

/** ISO 8601; null when there was none. */
export function lastBackup(dataDir: string): string | null {
  try {
    const { at } = JSON.parse(readFileSync(join(dataDir, FILE), 'utf8')) as { at?: unknown }
    if (typeof at === 'string' && !Number.isNaN(Date.parse(at))) return at
    throw new Error(`${FILE} in ${dataDir} names no time`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
