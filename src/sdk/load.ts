// Ties collecting, the storage token and sending together into the client a page uses.

import { collect } from './collect.ts'
import { detectPrivateMode } from './private-mode.ts'
import { renderBody, send } from './send.ts'
import { openTokenStore, tokenName } from './token.ts'
import type { Client, Collection, GetOptions, IdentifyResult, LoadOptions, PendingResult } from './types.ts'

export const version = '1.0.0'

const budgetMsDefault = 1_000
const timeoutMsDefault = 10_000
const collectionFreshMs = 5_000
const addressCharsMax = 2_048

/** `scriptUrl` is where this SDK was loaded from; null when that is unknown (bundled into a page's own script). */
export function makeLoad(scriptUrl: string | null): (options: LoadOptions) => Client {
  return (options) => openClient(options, scriptUrl)
}

function openClient(options: LoadOptions, scriptUrl: string | null): Client {
  const { publicKey, budgetMs = budgetMsDefault, timeoutMs = timeoutMsDefault } = options
  if (typeof publicKey !== 'string' || !/^pk_(live|test)_/.test(publicKey)) {
    throw new TypeError('publicKey must be a public key of this service: pk_live_… or pk_test_…')
  }
  const endpoint = readEndpoint(options.endpoint, scriptUrl)
  const store = openTokenStore(tokenName(publicKey))
  // Started here, since it takes longest of all; nothing is sent before get().
  const privateMode = detectPrivateMode()
  privateMode.catch(() => undefined)
  let collection: { started: Promise<Collection>; doneAt: number | null } | null = null
  let resets = 0

  function collectOnce(): Promise<Collection> {
    if (collection && (collection.doneAt === null || performance.now() - collection.doneAt < collectionFreshMs)) {
      return collection.started
    }
    const current = {
      started: collect({ budgetMs, workerUrl: `${endpoint}/sdk.js`, privateMode }),
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

  async function get(request: GetOptions = {}): Promise<IdentifyResult | PendingResult> {
    const resetsBefore = resets
    const [{ components, automation }, storageToken] = await Promise.all([collectOnce(), store.read()])
    const body = renderBody({
      nonce: makeNonce(),
      sdk: { name: 'js', version },
      storageToken,
      ...pick(request),
      url: location.href.split('#')[0]?.slice(0, addressCharsMax),
      referrer: document.referrer.slice(0, addressCharsMax),
      components,
      automation,
    })
    const answer = await send(`${endpoint}/v1/identify?key=${encodeURIComponent(publicKey)}`, body, timeoutMs)
    if (!('visitorId' in answer)) return answer
    const { storageToken: issued, ...result } = answer
    // A reset during the request wins: storing now would bring back what the visitor asked to forget.
    if (typeof issued === 'string' && resets === resetsBefore) await store.write(issued)
    return result
  }

  return {
    get,
    async components() {
      return (await collectOnce()).components
    },
    async reset() {
      resets += 1
      await store.clear()
    },
  }
}

// Undefined members are left out, so that an unset option is not sent as null.
function pick({ linkedId, email, tag }: GetOptions): Record<string, unknown> {
  return { linkedId, email, tag }
}

function readEndpoint(endpoint: string | undefined, scriptUrl: string | null): string {
  if (endpoint !== undefined) return new URL(endpoint, location.href).href.replace(/\/+$/, '')
  return new URL(scriptUrl || location.href, location.href).origin
}

/** 128 random bits as 22 characters of the URL-safe base64 alphabet. */
function makeNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')
}
