// Ties collecting, the storage token and sending together into the client a page uses.

import { sentAddress } from './address.ts'
import { within } from './budget.ts'
import { openCache } from './cache.ts'
import { collect } from './collect.ts'
import { FingerpostError } from './errors.ts'
import { detectPrivateMode } from './private-mode.ts'
import { type IdentifyAnswer, renderBody, send } from './send.ts'
import { openTokenStore, tokenName } from './token.ts'
import type { Client, Collection, GetOptions, IdentifyResult, LoadOptions, PendingResult } from './types.ts'

export const version = '1.1.0'

const budgetMsDefault = 1_000
const timeoutMsDefault = 10_000
const collectionFreshMs = 5_000

/** `scriptUrl` is where this SDK was loaded from; null when that is unknown (bundled into a page's own script). */
export function makeLoad(scriptUrl: string | null): (options: LoadOptions) => Client {
  return (options) => openClient(options, scriptUrl)
}

function openClient(options: LoadOptions, scriptUrl: string | null): Client {
  const { publicKey, budgetMs = budgetMsDefault, timeoutMs = timeoutMsDefault, serverCookie = 'same-origin' } = options
  if (typeof publicKey !== 'string' || !/^pk_(live|test)_/.test(publicKey)) {
    throw new TypeError('publicKey must be a public key of this service: pk_live_… or pk_test_…')
  }
  // A server that renders pages opens a client and asks nothing of it.
  const isPage = typeof document === 'object'
  const endpoints = isPage ? readEndpoints(options.endpoint, scriptUrl) : []
  const name = tokenName(publicKey)
  const store = openTokenStore(name, options.cookieDomain)
  let mayStore = options.storage !== false
  const cache = openCache(name, options.cacheSeconds ?? 0, () => mayStore)
  let probing: Promise<unknown> | null = null
  /** It writes, so as to see what a private window refuses: not before the page allows storage. */
  async function privateMode(): Promise<unknown> {
    if (!mayStore) throw new Error('storage is not allowed')
    probing ??= detectPrivateMode()
    return probing
  }
  // Started here, since it takes longest of all, and told where it is asked for; nothing is sent before get().
  if (isPage) privateMode().catch(() => undefined)
  let collection: { started: Promise<Collection>; doneAt: number | null } | null = null
  let resets = 0

  function collectOnce(): Promise<Collection> {
    if (collection && (collection.doneAt === null || performance.now() - collection.doneAt < collectionFreshMs)) {
      return collection.started
    }
    const worker = { url: `${endpoints[0]}/sdk.js`, mode: options.worker ?? 'auto' }
    const current = {
      started: collect({ budgetMs, worker, privateMode }),
      doneAt: null as number | null,
    }
    current.started.then(
      () => {
        current.doneAt = performance.now()
      },
      () => {
        collection = null
      },
    )
    collection = current
    return current.started
  }

  async function identify({ signal, ...request }: GetOptions): Promise<IdentifyResult | PendingResult> {
    const asked = JSON.stringify([publicKey, endpoints, request.linkedId, request.email, request.tag])
    const known = cache.find(asked)
    if (known) return known
    const resetsBefore = resets
    const keeps = mayStore
    const gathered = Promise.all([collectOnce(), keeps ? store.read() : null])
    const [{ components, automation }, storageToken] = await unlessAborted(gathered, signal)
    const body = renderBody({
      nonce: makeNonce(),
      sdk: { name: 'js', version },
      // What was forgotten while the page was looked at is not shown any more.
      storageToken: resets === resetsBefore ? storageToken : null,
      ...pick(request),
      url: sentAddress(location.href, options.urlParams, options.urlFragment),
      referrer: sentAddress(document.referrer),
      components,
      automation,
    })
    const credentials = keeps && mayStore && serverCookie !== 'off' ? serverCookie : 'omit'
    let answer: IdentifyAnswer
    try {
      const urls = endpoints.map((endpoint) => `${endpoint}/v1/identify?key=${encodeURIComponent(publicKey)}`)
      answer = await send(body, { urls, timeoutMs, credentials, signal })
    } finally {
      // Whatever came of the request: the service may have set the cookie that a reset meanwhile asked it to end.
      if (resets !== resetsBefore && credentials !== 'omit') await endCookies()
    }
    if (!('visitorId' in answer)) return answer
    const { storageToken: issued, ...result } = answer
    // A reset during the request wins: storing now would bring back what the visitor asked to forget.
    if (resets !== resetsBefore) return result
    cache.keep(asked, result)
    if (typeof issued === 'string' && keeps && mayStore) await store.write(issued)
    return result
  }

  async function get(request: GetOptions = {}): Promise<IdentifyResult | PendingResult> {
    try {
      return await identify(request)
    } catch (error) {
      const failure =
        error instanceof FingerpostError
          ? error
          : new FingerpostError('internal_error', 'The SDK failed.', 0, undefined)
      tell(failure)
      throw failure
    }
  }

  /** What a page's own handler throws is the page's own fault, and no reason to fail. */
  function tell(failure: FingerpostError): void {
    try {
      options.onError?.(failure)
    } catch (error) {
      setTimeout(() => {
        throw error
      })
    }
  }

  async function reset(): Promise<void> {
    resets += 1
    cache.forget()
    await Promise.all([store.clear(), serverCookie === 'off' ? null : endCookies()])
  }

  /** The service alone can end a cookie that no script can reach. Never rejects, nor takes longer than sending may. */
  function endCookies(): Promise<unknown> {
    const ending = endpoints.map((endpoint) =>
      fetch(`${endpoint}/v1/identify/forget?key=${encodeURIComponent(publicKey)}`, {
        method: 'POST',
        headers: { 'Content-Type': 'text/plain' },
        credentials: serverCookie as RequestCredentials,
        keepalive: true,
      }).catch(() => null),
    )
    return within(Promise.all<unknown>(ending), timeoutMs, null)
  }

  return {
    get,
    tryGet: (request) => get(request).catch(() => null),
    async components() {
      return (await collectOnce()).components
    },
    async allowStorage(allowed) {
      mayStore = allowed
      if (!allowed) await reset()
    },
    reset,
  }
}

// Undefined members are left out, so that an unset option is not sent as null.
function pick({ linkedId, email, tag }: GetOptions): Record<string, unknown> {
  return { linkedId, email, tag }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const abort = () => reject(new FingerpostError('aborted', 'The page ended the call.'))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).then(() => signal.removeEventListener('abort', abort))
  })
}

function readEndpoints(endpoint: LoadOptions['endpoint'], scriptUrl: string | null): string[] {
  const given = typeof endpoint === 'string' ? [endpoint] : (endpoint ?? [])
  if (given.length === 0) return [new URL(scriptUrl || location.href, location.href).origin]
  return given.map((one) => new URL(one, location.href).href.replace(/\/+$/, ''))
}

/** 128 random bits as 22 characters of the URL-safe base64 alphabet. */
function makeNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')
}
