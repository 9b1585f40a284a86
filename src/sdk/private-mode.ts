// Tells a private window from a normal one. Chromium is asked by timing, for others the library knows their tells.

import { detectIncognito } from 'detectincognitojs'
import { chromiumEvalLength, probeEvalLength } from './environment.ts'

export type PrivateMode = { isPrivate: boolean; browserName: string }

const databaseName = 'fingerpost-probe'
const storeName = 'probe'
const pairsMax = 400
// How much one pair speaks for a normal window: the log of the likelihood ratio between "strict is the slower one in 65 %
// of pairs" and "in half of them". A slow, busy machine comes near 65 %, a quiet one reaches 80 %.
const slowerStrict = Math.log(0.65 / 0.5)
const fasterStrict = Math.log(0.35 / 0.5)
// Calling a normal window private is the worse mistake, so that side needs more: 1 in 200 against 1 in 100.
const enoughForNormal = Math.log(100)
const enoughForPrivate = -Math.log(200)

/** Rejects when the browser cannot be asked or the answer stays unclear. */
export async function detectPrivateMode(): Promise<PrivateMode> {
  if (probeEvalLength() !== chromiumEvalLength) return detectIncognito()
  const database = await openDatabase()
  try {
    return { isPrivate: await keepsStorageInMemory(database), browserName: nameChromium() }
  } finally {
    database.close()
    indexedDB.deleteDatabase(databaseName)
  }
}

// A private window of Chromium keeps its storage in memory, where asking for a write that survives a power cut costs
// nothing extra. On a disk it costs a flush. Pairs of one write each, in alternating order, are compared one by one and
// only by which is slower: single times are far too noisy while a page loads.
async function keepsStorageInMemory(database: IDBDatabase): Promise<boolean> {
  await timeWrite(database, 'relaxed')
  await timeWrite(database, 'strict')
  let evidence = 0
  for (let pair = 0; pair < pairsMax; pair++) {
    const before = pair % 2 === 0 ? await timeWrite(database, 'relaxed') : null
    const strictMs = await timeWrite(database, 'strict')
    const relaxedMs = before ?? (await timeWrite(database, 'relaxed'))
    evidence += strictMs > relaxedMs ? slowerStrict : fasterStrict
    if (evidence > enoughForNormal) return false
    if (evidence < enoughForPrivate) return true
  }
  throw new Error('unclear')
}

function timeWrite(database: IDBDatabase, durability: IDBTransactionDurability): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const transaction = database.transaction(storeName, 'readwrite', { durability })
    if (transaction.durability !== durability) throw new Error('unsupported')
    transaction.oncomplete = () => resolve(performance.now() - start)
    transaction.onabort = () => reject(transaction.error)
    transaction.objectStore(storeName).put(1, 0)
  })
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(databaseName, 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore(storeName)
    opening.onsuccess = () => resolve(opening.result)
    opening.onerror = () => reject(opening.error)
  })
}

function nameChromium(): string {
  const { userAgent } = navigator
  if (!/Chrome/.test(userAgent)) return 'Chromium'
  if ('brave' in navigator) return 'Brave'
  if (/Edg/.test(userAgent)) return 'Edge'
  return /OPR/.test(userAgent) ? 'Opera' : 'Chrome'
}
