// Keeps the service's storage token in three places of the page's own origin; whichever survives restores the others.

import { within } from './budget.ts'

export type TokenStore = {
  /** The token, or null. Restores it where it is missing. Never rejects. */
  read(): Promise<string | null>
  write(token: string): Promise<void>
  clear(): Promise<void>
}

const cookieDays = 400
const databaseName = 'fingerpost'
const databaseStore = 'tokens'
const databaseWaitMsMax = 400
const tokenPattern = /^st_[\w.~-]{1,509}$/

/**
 * `name` tells apart tokens of different environments on one site: a live token shown to the test environment would
 * count as forged. `cookieDomain`: of the cookie; undefined is this host alone.
 */
export function openTokenStore(name: string, cookieDomain?: string): TokenStore {
  /** A cookie of this host alone, as a site without `cookieDomain` has, would stand beside the one that is shared. */
  function setCookie(value: string, maxAgeSeconds: number): void {
    if (cookieDomain) writeCookie(name, '', 0)
    writeCookie(name, value, maxAgeSeconds, cookieDomain)
  }

  async function write(token: string): Promise<void> {
    setCookie(token, cookieDays * 86_400)
    attempt(() => localStorage.setItem(name, token))
    await inDatabase('readwrite', (store) => store.put(token, name))
  }

  return {
    async read() {
      const kept = [readCookie(name), attempt(() => localStorage.getItem(name))]
      kept.push(await inDatabase('readonly', (store) => store.get(name)))
      const tokens = kept.filter((value): value is string => typeof value === 'string' && tokenPattern.test(value))
      const token = tokens[0] ?? null
      if (token !== null && kept.some((value) => value !== token)) await write(token)
      return token
    },
    async write(token) {
      if (tokenPattern.test(token)) await write(token)
    },
    async clear() {
      setCookie('', 0)
      attempt(() => localStorage.removeItem(name))
      await inDatabase('readwrite', (store) => store.delete(name))
    },
  }
}

export function tokenName(publicKey: string): string {
  return publicKey.startsWith('pk_test_') ? 'fingerpost_test' : 'fingerpost_live'
}

// Of a host's own cookie and a shared one the site uses the one that was made later: browsers list it last.
function readCookie(name: string): unknown {
  const pairs = attempt(() => document.cookie) ?? ''
  const pair = pairs
    .split('; ')
    .reverse()
    .find((text) => text.startsWith(`${name}=`))
  return pair ? pair.slice(name.length + 1) : null
}

function writeCookie(name: string, value: string, maxAgeSeconds: number, domain?: string): void {
  const scope = domain ? `; Domain=${domain}` : ''
  const secure = location.protocol === 'https:' ? '; Secure' : ''
  attempt(() => {
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing in Safari and on plain http
    document.cookie = `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; SameSite=Lax${secure}${scope}`
  })
}

// Opened for each use: a connection left open would block another tab's upgrade or deletion.
function inDatabase(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  const work = new Promise<unknown>((resolve, reject) => {
    const opening = indexedDB.open(databaseName, 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore(databaseStore)
    opening.onerror = () => reject(opening.error)
    opening.onblocked = () => reject(new Error('blocked'))
    opening.onsuccess = () => {
      const database = opening.result
      try {
        const transaction = database.transaction(databaseStore, mode)
        const request = act(transaction.objectStore(databaseStore))
        transaction.oncomplete = () => {
          database.close()
          resolve(request.result)
        }
        transaction.onabort = () => {
          database.close()
          reject(transaction.error)
        }
      } catch (error) {
        database.close()
        reject(error)
      }
    }
  })
  return within(work, databaseWaitMsMax, null)
}

function attempt<T>(act: () => T): T | null {
  try {
    return act()
  } catch {
    return null
  }
}
