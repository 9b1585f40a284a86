// Parsers of texts that many requests share, with a bounded memory of their answers.

import { type Gpu, parseGpu } from './gpu.ts'
import { parseUserAgent, type UserAgent } from './user-agent.ts'

export interface Parsers {
  userAgent(text: string): UserAgent
  gpu(text: string): Gpu
}

export const plainParsers: Parsers = { userAgent: parseUserAgent, gpu: parseGpu }

/** Parsers that remember: a few thousand User-Agents and renderers cover nearly all traffic. At most ~6 MB. */
export function openParsers(entriesMax = 4_096): Parsers {
  return {
    userAgent: rememberByText(parseUserAgent, entriesMax, 512),
    gpu: rememberByText(parseGpu, entriesMax, 256),
  }
}

/**
 * Remembers answers of a pure function of a text. Two generations of `entriesMax` texts each: when the young one is
 * full the old one is dropped, so what is in use stays and memory is bounded. Longer texts are not remembered.
 */
function rememberByText<T>(read: (text: string) => T, entriesMax: number, charsMax: number): (text: string) => T {
  let young = new Map<string, T>()
  let old = new Map<string, T>()
  // Header, page and worker mostly say the same: to compare a text costs less than to look it up.
  let latest: { readonly text: string; readonly value: T } | null = null
  function remembered(text: string): T {
    const hit = young.get(text)
    if (hit !== undefined) return hit
    const value = old.get(text) ?? read(text)
    if (text.length > charsMax) return value
    if (young.size >= entriesMax) {
      old = young
      young = new Map()
    }
    young.set(text, value)
    return value
  }
  return (text) => {
    if (latest === null || latest.text !== text) latest = { text, value: remembered(text) }
    return latest.value
  }
}
