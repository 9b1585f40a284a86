// The last result, for pages that ask again within seconds: in this page's memory, and for the next page in sessionStorage.

import type { IdentifyResult } from './types.ts'

export type ResultCache = {
  /** The result that was kept for these options, or null. */
  find(options: string): IdentifyResult | null
  keep(options: string, result: IdentifyResult): void
  forget(): void
}

type Kept = { options: string; result: IdentifyResult; until: number }

/** `persists`: whether the next page may have it. Times are of the wall clock, since pages share no other. */
export function openCache(name: string, seconds: number, persists: () => boolean): ResultCache {
  const place = `${name}_result`
  let kept: Kept | null = null

  function stored(): Kept | null {
    try {
      const text = persists() ? sessionStorage.getItem(place) : null
      const found = text === null ? null : (JSON.parse(text) as Partial<Kept>)
      const { options, result, until } = found ?? {}
      if (typeof options !== 'string' || typeof until !== 'number' || typeof result?.visitorId !== 'string') return null
      return { options, result, until }
    } catch {
      return null
    }
  }

  return {
    find(options) {
      if (seconds <= 0) return null
      kept ??= stored()
      const left = (kept?.until ?? 0) - Date.now()
      // A clock that was set back must not keep a result for longer.
      return kept && kept.options === options && left > 0 && left <= seconds * 1_000 ? kept.result : null
    },
    keep(options, result) {
      if (seconds <= 0) return
      kept = { options, result, until: Date.now() + seconds * 1_000 }
      try {
        if (persists()) sessionStorage.setItem(place, JSON.stringify(kept))
      } catch {
        // Storage is full or forbidden: this page still has it.
      }
    },
    forget() {
      kept = null
      try {
        sessionStorage.removeItem(place)
      } catch {
        // Nothing was stored.
      }
    },
  }
}
