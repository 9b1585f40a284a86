// One build of a folder at a time: whoever waits goes on when the other has ended, also when it was killed.
import { linkSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const lockBeatMs = 1_000
const lockStaleMs = 15_000
const lockWaitMsMax = 300_000

/** Holds the file `.lock` of the folder `dir` while `work` runs. The holder touches the file, so that one left by a killed build is seen as dead. */
export async function withLock(dir, work) {
  const lock = join(dir, '.lock')
  mkdirSync(dir, { recursive: true })
  const mine = join(dir, `.lock-${process.pid}`)
  const startedAt = Date.now()
  for (;;) {
    writeFileSync(mine, `${process.pid}\n`)
    try {
      linkSync(mine, lock)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    } finally {
      rmSync(mine, { force: true })
    }
    const stat = statSync(lock, { throwIfNoEntry: false })
    if (stat && Date.now() - stat.mtimeMs > lockStaleMs) takeAway(dir, stat.ino)
    else if (Date.now() - startedAt > lockWaitMsMax) throw new Error(`another build holds ${lock} for too long`)
    else await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const release = () => rmSync(lock, { force: true })
  process.once('exit', release)
  const beat = setInterval(() => utimesSync(lock, new Date(), new Date()), lockBeatMs)
  try {
    return await work()
  } finally {
    clearInterval(beat)
    process.off('exit', release)
    release()
  }
}

// Two waiters may see the same dead lock: the file is moved aside first, and put back if it turned out to be a new one.
function takeAway(dir, deadInode) {
  const aside = join(dir, `.lock-dead-${process.pid}`)
  try {
    renameSync(join(dir, '.lock'), aside)
    if (statSync(aside).ino !== deadInode) linkSync(aside, join(dir, '.lock'))
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
  }
  rmSync(aside, { force: true })
}
