// How many different accounts a visitor was seen with: exact up to 1,000, an estimate of constant size beyond.

import { hash53 } from '../domain/ids.ts'

/** Accounts counted exactly, and hashes kept at most. */
export const ACCOUNTS_EXACT_MAX = 1_000
const HASH_SPACE = 2 ** 53

/** Sorted 53-bit hashes; once full, the smallest ones seen (a k-minimum-values sketch). */
export interface LinkedAccounts {
  hashes: number[]
  full: boolean
}

/** Position of the first hash that is not smaller. */
function placeOf(hashes: readonly number[], hash: number): number {
  let low = 0
  let high = hashes.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((hashes[middle] as number) < hash) low = middle + 1
    else high = middle
  }
  return low
}

/** Whether the account was added before. Of a full sketch the unkept ones cannot be told: they count as known. */
export function knowsAccount(accounts: LinkedAccounts, linkedId: string): boolean {
  const hash = hash53(linkedId)
  const at = placeOf(accounts.hashes, hash)
  return accounts.hashes[at] === hash || (accounts.full && at === accounts.hashes.length)
}

/** Adds an account; the same one again changes nothing. */
export function addAccount(accounts: LinkedAccounts, linkedId: string): void {
  const hash = hash53(linkedId)
  const { hashes } = accounts
  const low = placeOf(hashes, hash)
  if (hashes[low] === hash) return
  if (hashes.length === ACCOUNTS_EXACT_MAX) {
    accounts.full = true
    if (low === hashes.length) return
    hashes.pop()
  }
  hashes.splice(low, 0, hash)
}

/** The accounts but those of these hashes. A full sketch stays whole: its estimate needs all that it keeps. */
export function withoutAccounts(accounts: LinkedAccounts, gone: readonly number[]): LinkedAccounts {
  if (accounts.full || gone.length === 0) return accounts
  const out = new Set(gone)
  return { hashes: accounts.hashes.filter((hash) => !out.has(hash)), full: false }
}

/** Accounts of either. */
export function joinAccounts(a: LinkedAccounts, b: LinkedAccounts): LinkedAccounts {
  const hashes = [...new Set([...a.hashes, ...b.hashes])].sort((x, y) => x - y)
  return { hashes: hashes.slice(0, ACCOUNTS_EXACT_MAX), full: a.full || b.full || hashes.length > ACCOUNTS_EXACT_MAX }
}

/**
 * Distinct accounts. Hashes are uniform, so when the k-th smallest of them lies at share x of the hash space, about
 * (k − 1) / x were drawn; the standard error at k = 1,000 is 3.2 %.
 */
export function countAccounts(accounts: LinkedAccounts): number {
  const { hashes, full } = accounts
  if (!full) return hashes.length
  const largest = hashes[hashes.length - 1] as number
  return Math.max(ACCOUNTS_EXACT_MAX + 1, Math.round(((hashes.length - 1) * HASH_SPACE) / largest))
}
