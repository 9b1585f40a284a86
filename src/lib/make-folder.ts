// Making a folder with those above it, for the user of this process alone. mkdir's own `recursive` never returns below /proc.

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

const MODE = 0o700

/** Throws what the system says, also where something else has the name. */
export function makeFolder(dir: string): void {
  const missing: string[] = []
  for (let at = resolve(dir); !existsSync(at); at = dirname(at)) missing.push(at)
  for (const one of missing.reverse()) makeOne(one)
  if (!statSync(dir).isDirectory()) mkdirSync(dir)
}

function makeOne(dir: string): void {
  try {
    mkdirSync(dir, { mode: MODE })
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
