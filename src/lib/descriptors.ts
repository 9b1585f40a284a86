// How many files and sockets this process may have open.

import { readFileSync } from 'node:fs'

const UNKNOWN = 1_024

export function descriptorsMax(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? UNKNOWN)
  } catch {
    return UNKNOWN
  }
}
