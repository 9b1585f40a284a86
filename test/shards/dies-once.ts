// Loaded before a server by `--import`: the first of its shards to start dies before it has run anything of ours, when everything else of
// its process waits for it.

import { closeSync, openSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const DIES_AFTER_MS = 8_000

const flag = process.env.DIES_ONCE_FLAG

/** Of all threads and processes the first. */
function isFirst(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx'))
    return true
  } catch {
    return false
  }
}

if (!isMainThread && flag !== undefined && isFirst(flag)) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, DIES_AFTER_MS)
  process.exit(1)
}
