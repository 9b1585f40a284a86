// Loaded into a server and its threads before their own code: the first thread that sees the file that is named removes it and throws,
// as a fault in the code of a shard would.

import { isMainThread } from 'node:worker_threads'
import { isRemovedHere } from './remove-first.ts'

const LOOK_MS = 20
const path = process.env.THROW_FILE ?? ''

function look(): void {
  if (isRemovedHere(path)) throw new Error('thrown by a test')
}

if (!isMainThread) setInterval(look, LOOK_MS).unref()
